"""Addresses and ports of Services, given out by the server."""

from __future__ import annotations

from pilotage.localcluster.rest.call import Call
from pilotage.localcluster.rest.trees import child, children
from pilotage.localcluster.store import Tree

_FIRST_PORT, _LAST_PORT = 30000, 32767
_ADDRESSES = 1 << 16  # 10.96.0.0/16 and on; the first few are the cluster's own
_RESERVED = 256


def allocate(call: Call, tree: Tree) -> None:
    """Give a Service its cluster IP, and node ports if its type has them."""
    spec = child(tree, "spec")
    if call.kind.resource != "services" or spec is None:
        return
    kind = spec.get("type") or "ClusterIP"
    if kind == "ExternalName":
        return
    others = [s for s in _others(call, tree) if s is not None]
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _address({str(other.get("clusterIP")) for other in others})
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if kind in ("NodePort", "LoadBalancer"):
        used = {port.get("nodePort") for other in others for port in children(other, "ports")}
        for port in children(spec, "ports"):
            if not port.get("nodePort"):
                port["nodePort"] = next(n for n in range(_FIRST_PORT, _LAST_PORT + 1) if n not in used)
            used.add(port["nodePort"])


def _others(call: Call, tree: Tree) -> list[Tree | None]:
    name, namespace = tree["metadata"]["name"], tree["metadata"].get("namespace")
    return [
        child(record.tree(), "spec")
        for record in call.store.list("services").records
        if (record.name, record.namespace) != (name, namespace)
    ]


def _address(used: set[str]) -> str:
    numbers = range(_RESERVED, _ADDRESSES)
    addresses = (f"10.96.{number >> 8}.{number & 255}" for number in numbers if number & 255 not in (0, 255))
    return next(address for address in addresses if address not in used)
