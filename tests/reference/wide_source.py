"""Wide random manifests: every field that the default plugins read, volumes left out.

Small vocabularies and small nodes, so that rules meet each other and every filter rejects now and then.
Extension point for volumes: `WideSource.volumes` draws what pods mount.
"""

from __future__ import annotations

from typing import Any

from reference.random_clusters import MOMENT, NAMESPACES, Source
from reference.wide_args import draw_args

Tree = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
MIB = 1024 * 1024
FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "Unheard")
IMAGES = ("app", "app:1", "reg.io:5000/app", "reg.io/app:2", "db@sha256:00", "big:latest")
RACKS = ("1", "2", "12", "007", "1_0", "x", "99999999999999999999")
OWNERS = (
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("v1", "ReplicationController"),
    ("batch/v1", "Job"),
)


class WideSource(Source):
    """`n_nodes` bounds the node names that pods may pin."""

    def __init__(self, seed: int, n_nodes: int = 0) -> None:
        super().__init__(seed)
        self.n_nodes = n_nodes
        # Many small pods that are alike: every domain has some, so that minima and skews matter.
        self.is_dense = self.chance(0.2)
        self.is_crowded = not self.is_dense and self.chance(0.3)  # small nodes
        self.is_mild = self.is_dense or self.chance(
            0.6
        )  # most nodes are feasible for most pods: scores matter
        self.names: list[str] = []

    # Nodes

    def node(self) -> Tree:
        name = f"n{self.number()}"
        self.names.append(name)
        return self.node_named(name)

    def node_named(self, name: str) -> Tree:
        spec: Tree = {}
        if self.chance(0.35):
            spec["taints"] = [self.taint() for _ in range(self.one_of(1, 1, 2, 3))]
        if self.chance(0.01 if self.is_mild else 0.07):
            spec["unschedulable"] = True
        status: Tree = {"allocatable": self.allocatable()}
        if self.chance(0.6):
            status["images"] = [self.image_entry() for _ in range(self.one_of(1, 2, 3))]
        if self.chance(0.6):
            status["declaredFeatures"] = self.random.sample(FEATURES, self.random.randint(0, 3))
        meta = {"name": name, "labels": self.node_labels(name)}
        return {"metadata": meta, "spec": spec, "status": status}

    def node_labels(self, name: str) -> dict[str, str]:
        labels = super().node_labels(name)
        if "rack" in labels:
            labels["rack"] = self.one_of(*RACKS)
        return labels

    def taint(self) -> Tree:
        soft = ("PreferNoSchedule",) * (10 if self.is_mild else 2)
        effect = self.one_of("NoSchedule", "NoExecute", *soft)
        taint = {"key": self.one_of("t", "t", "u"), "effect": effect}
        if self.chance(0.8):
            taint["value"] = self.one_of("x", "y")
        return taint

    def allocatable(self) -> Tree:
        few = self.is_crowded
        amounts: Tree = {
            "cpu": self.one_of("1", "2", "1500m", 2.5) if few else self.one_of("4", "8", "16", "0.7"),
            "memory": self.one_of("1Gi", "2Gi", "1500M") if few else self.one_of("8Gi", "16Gi", "1e10"),
            "pods": self.one_of("2", "3", 4) if few else self.one_of("5", "20", "110"),
        }
        if self.chance(0.6):
            amounts["ephemeral-storage"] = self.one_of("10Gi", "100G", "0")
        if self.chance(0.4):
            amounts["example.com/gpu"] = self.one_of("1", "4", "0")
        if self.chance(0.3):
            amounts["other.io/nic"] = self.one_of("2", "8")
        if self.chance(0.3):
            amounts["hugepages-2Mi"] = self.one_of("64Mi", "1Gi")
        if self.chance(0.05):
            del amounts[self.one_of("cpu", "memory")]
        return amounts

    def image_entry(self) -> Tree:
        name = self.one_of(*IMAGES)
        full = name if ":" in name.split("/")[-1] else f"{name}:latest"
        names = [full, f"{full.split(':')[0]}@sha256:{self.one_of('aa', 'bb')}"]
        return {
            "names": names,
            "sizeBytes": self.one_of(5, 40, 333, 700, 1500, 9000) * MIB + self.one_of(0, 7),
        }

    # Pods

    def pod(self, *, node: str = "", richness: float = 0.5) -> Tree:
        tree = super().pod(node=node, richness=richness)
        meta, spec = tree["metadata"], tree["spec"]
        spec["containers"] = [self.container(f"c{i}") for i in range(self.one_of(1, 1, 1, 2, 3))]
        if self.chance(0.25):
            spec["initContainers"] = [self.init_container(f"i{i}") for i in range(self.one_of(1, 2, 3))]
        if self.is_mild:
            self._soften(spec)
        if self.is_dense:
            self._make_alike(meta, spec)
        self._add_amounts(spec)
        if self.chance(0.3):
            spec["priority"] = self.one_of(-5, 0, 10, 100)
        if self.chance(0.15):
            spec["volumes"] = self.volumes()
        if self.chance(0.05):
            spec["hostUsers"] = self.chance(0.3)
            spec["hostNetwork"] = self.chance(0.6)
            if spec["hostNetwork"]:
                self._default_ports(spec)
        if node:
            self._add_status(tree)
        else:
            self._add_node_affinity(spec)
        if self.chance(0.3):
            meta["ownerReferences"] = [self.owner()]
        return tree

    def _soften(self, spec: Tree) -> None:
        """Drops most of what few nodes can meet."""
        if self.chance(0.7):
            spec.pop("nodeSelector", None)
            spec.get("affinity", {}).pop("nodeAffinity", None)
        if self.chance(0.9):
            for container in spec["containers"] + (spec.get("initContainers") or []):
                requests = (container.get("resources") or {}).get("requests") or {}
                for resource in ("ephemeral-storage", "example.com/gpu", "other.io/nic", "hugepages-2Mi"):
                    requests.pop(resource, None)

    def _make_alike(self, meta: Tree, spec: Tree) -> None:
        meta["namespace"] = "a"
        if self.chance(0.85):
            meta["labels"]["app"] = "x"
        spec.pop("initContainers", None)
        spec["containers"] = [{"name": "c", "image": "app", "resources": {"requests": {"cpu": "10m"}}}]

    def selector(self) -> Tree | None:
        if self.is_dense and self.chance(0.7):
            return {"matchLabels": {"app": "x"}}
        return super().selector()

    def owner(self) -> Tree:
        api, kind = self.one_of(*OWNERS)
        owner = {"apiVersion": api, "kind": kind, "name": self.one_of("rs", "other"), "uid": "1"}
        return {**owner, "controller": self.chance(0.9)}

    def container(self, name: str) -> Tree:
        container: Tree = {"name": name, "image": self.one_of(*IMAGES)}
        if self.chance(0.75):
            container["resources"] = {"requests": self.requests()}
        if self.chance(0.15):
            container["ports"] = [self.port() for _ in range(self.one_of(1, 1, 2))]
        if self.chance(0.04):
            container["restartPolicyRules"] = [{"action": self.one_of("RestartAllContainers", "Restart")}]
        return container

    def init_container(self, name: str) -> Tree:
        container = self.container(name)
        if self.chance(0.4):
            container["restartPolicy"] = "Always"
        return container

    def _default_ports(self, spec: Tree) -> None:
        """As the API server defaults and validates: on the host's network every port is a host port."""
        for container in spec["containers"] + (spec.get("initContainers") or []):
            for port in container.get("ports") or []:
                port["hostPort"] = port["containerPort"] = port.get("hostPort", port["containerPort"])

    def requests(self) -> Tree:
        requests: Tree = {}
        if self.chance(0.8):
            requests["cpu"] = self.one_of("100m", "250m", "1", "0", 0.3, "1n", "333u", "2")
        if self.chance(0.7):
            requests["memory"] = self.one_of("64Mi", "1Gi", "500M", "0", "1500m", "3Gi", "1e9")
        if self.chance(0.15):
            requests["ephemeral-storage"] = self.one_of("1Gi", "20Gi", "0")
        if self.chance(0.12):
            requests["example.com/gpu"] = self.one_of("1", "2", "0")
        if self.chance(0.08):
            requests["other.io/nic"] = self.one_of(1, "3")
        if self.chance(0.08):
            requests["hugepages-2Mi"] = self.one_of("32Mi", "128Mi")
        return requests

    def port(self) -> Tree:
        port: Tree = {"containerPort": 80}
        if self.chance(0.8):
            port["hostPort"] = self.one_of(80, 443)
        if self.chance(0.4):
            port["hostIP"] = self.one_of("10.0.0.1", "10.0.0.2", "0.0.0.0", "")
        if self.chance(0.4):
            port["protocol"] = self.one_of("TCP", "UDP")
        return port

    def _add_amounts(self, spec: Tree) -> None:
        if self.chance(0.1):
            spec["overhead"] = {"cpu": "50m", "memory": self.one_of("10Mi", "0")}
        if self.chance(0.12):
            names = self.random.sample(("cpu", "memory", "hugepages-2Mi"), self.random.randint(1, 2))
            amounts = {"cpu": ("500m", "2"), "memory": ("128Mi", "2Gi"), "hugepages-2Mi": ("64Mi", "256Mi")}
            spec["resources"] = {"requests": {name: self.one_of(*amounts[name]) for name in names}}

    def volumes(self) -> list[Tree]:
        """Volumes owner: claims, ephemeral and cloud volumes belong here."""
        return [{"name": "v", "image": {"reference": self.one_of(*IMAGES)}}]

    # What only bound pods have

    def _add_status(self, tree: Tree) -> None:
        if not self.chance(0.25):
            return
        status: Tree = {}
        spec = tree["spec"]
        for field, containers in (
            ("containerStatuses", spec["containers"]),
            ("initContainerStatuses", spec.get("initContainers") or []),
        ):
            if of := [self._container_status(c["name"]) for c in containers if self.chance(0.7)]:
                status[field] = of
        if self.chance(0.4):
            reason = self.one_of("Infeasible", "Deferred")
            status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
        if self.chance(0.3):
            status["allocatedResources"] = self.level()
        if self.chance(0.3):
            status["resources"] = {"requests": self.level()}
        tree["status"] = status

    def _container_status(self, name: str) -> Tree:
        status: Tree = {"name": name}
        if self.chance(0.6):
            status["allocatedResources"] = self.requests()
        if self.chance(0.6):
            status["resources"] = {"requests": self.requests()} if self.chance(0.9) else {}
        return status

    def level(self) -> Tree:
        return {"cpu": self.one_of("100m", "3"), "memory": self.one_of("1Mi", "3Gi")}

    # Node affinity

    def _add_node_affinity(self, spec: Tree) -> None:
        affinity = spec.get("affinity") or {}
        if self.chance(0.12):
            terms = [self.node_term() for _ in range(self.one_of(1, 1, 2))]
            affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
        if self.chance(0.3):
            found = affinity.setdefault("nodeAffinity", {})
            found[PREFERRED] = [self.preference() for _ in range(self.one_of(1, 2, 3))]
        if affinity:
            spec["affinity"] = affinity

    def preference(self) -> Tree:
        return {"weight": self.random.randint(1, 100), "preference": self.node_term()}

    def node_term(self) -> Tree:
        term: Tree = {}
        if self.chance(0.75):
            term["matchExpressions"] = [self.node_expression() for _ in range(self.one_of(1, 1, 2))]
        if self.names and self.chance(0.3):
            term["matchFields"] = [self.node_field() for _ in range(self.one_of(1, 1, 2))]
        return term

    def node_field(self) -> Tree:
        name = self.one_of("absent", *self.names * 3)
        operator = self.one_of("In", "In", "In", "NotIn")
        return {"key": "metadata.name", "operator": operator, "values": [name]}

    def toleration(self) -> Tree:
        if self.chance(0.15):
            return {"key": self.one_of("u", "node.kubernetes.io/unschedulable"), "operator": "Exists"}
        if self.chance(0.2):
            effect = self.one_of("NoSchedule", "PreferNoSchedule", "NoExecute")
            return {"key": self.one_of("t", "u"), "value": self.one_of("x", ""), "effect": effect}
        return super().toleration()

    # Others

    def service(self, namespace: str, name: str) -> Tree:
        selector = self.one_of({"app": "x"}, {"app": "y", "tier": "f"}, {}, {"tier": "b"}, None)
        spec = {} if selector is None else {"selector": selector}
        return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}

    def controller(self, namespace: str, api: str, kind: str, name: str) -> Tree:
        pairs = self.one_of({"tier": "f"}, {"app": "x"}, {"rev": "1", "app": "y"})
        selector: Tree = {"matchLabels": pairs}
        if self.chance(0.3):
            selector = {"matchExpressions": [self.label_expression()]}
        meta = {"name": name, "namespace": namespace}
        spec = {"selector": pairs if kind == "ReplicationController" else selector}
        return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec}

    def args(self) -> dict[str, Tree]:
        return draw_args(self)


__all__ = ["MOMENT", "NAMESPACES", "OWNERS", "WideSource"]
