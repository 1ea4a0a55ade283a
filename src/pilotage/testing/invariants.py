"""What must hold of every cluster at every moment, checked from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pilotage.api import kinds, requests
from pilotage.api.decode import DecodeError, convert_object
from pilotage.api.nodes import Node
from pilotage.api.pods import Pod
from pilotage.api.quantity import QuantityError, milli_value, value
from pilotage.runtime.scheduler import Scheduler
from pilotage.testing.inprocess import Server
from pilotage.testing.requestlog import RequestLog

_CREATED = 201


def check_server(server: Server, log: RequestLog, *, may_overcommit: bool = False) -> None:
    """Each pod was bound at most once, and no node holds more than its allocatable."""
    check_bound_once(log)
    if not may_overcommit:
        check_capacity(server)


def check_bound_once(log: RequestLog) -> None:
    bound = Counter(
        record.json().get("metadata", {}).get("uid") or record.path
        for record in log.select(method="POST", path="/binding$", status=_CREATED)
    )
    twice = [uid for uid, count in bound.items() if count > 1]
    assert not twice, f"pods bound more than once: {twice}"


def check_capacity(server: Server) -> None:
    nodes = {view.metadata.name: view for view in _views(server, "nodes") if isinstance(view, Node)}
    used: dict[str, Counter[str]] = {}
    for pod in _views(server, "pods"):
        if not isinstance(pod, Pod) or not pod.spec.node_name or pod.is_terminal:
            continue
        amounts = used.setdefault(pod.spec.node_name, Counter())
        amounts["pods"] += 1
        amounts.update(_usage(pod))
    for name, amounts in used.items():
        if name in nodes:
            _check_node(nodes[name], amounts)


def _check_node(node: Node, used: Mapping[str, int]) -> None:
    allocatable = node.status.allocatable or {}
    for resource, amount in used.items():
        try:
            limit = (milli_value if resource == "cpu" else value)(allocatable.get(resource, 0))
        except QuantityError:
            continue
        assert amount <= limit, f"node {node.metadata.name} holds {amount} of {limit} {resource}"


def _usage(pod: Pod) -> Mapping[str, int]:
    try:
        return requests.pod_held(pod)
    except QuantityError:
        return {}


def _views(server: Server, resource: str) -> list[Any]:
    kind = kinds.by_resource(resource)
    assert kind is not None
    views = []
    for tree in server.read_all(kind):
        try:
            views.append(convert_object(kind, tree))
        except DecodeError:
            continue
    return views


def check_beliefs(server: Server, scheduler: Scheduler) -> None:
    """The engine's bound pods are the server's, node by node."""
    shown: dict[str, str] = {}
    for pod in _views(server, "pods"):
        if pod.spec.node_name and not pod.is_terminal:
            shown[pod.metadata.uid] = pod.spec.node_name
    table = scheduler.engine.cluster.nodes
    believed = {
        info.uid: table.name(row)
        for row in table.live_rows
        for info in scheduler.engine.cluster.pods_on(int(row))
    }
    known = {name for name in (table.name(row) for row in table.live_rows)}
    expected = {uid: node for uid, node in shown.items() if node in known}
    wrong = {
        uid: (believed.get(uid), expected.get(uid))
        for uid in sorted(believed.keys() | expected.keys())
        if believed.get(uid) != expected.get(uid)
    }
    assert not wrong, f"(believed, shown) by UID: {wrong}"
