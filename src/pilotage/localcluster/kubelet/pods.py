"""The kubelet's care for the pods on its nodes: start, end, graceful stop.

A bound pod runs after `start_seconds`; one that is being deleted stops after `stop_seconds`, at the latest
when its grace period is over, and is then removed. Annotations on a pod override both
(`pilotage.dev/start-seconds`, `pilotage.dev/stop-seconds`), and `pilotage.dev/run-seconds` makes it end well.

Laws: one status write per start; a pod never goes back from Running; nothing is done for pods on nodes
without a simulated kubelet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pilotage.api.meta import KubeObject
from pilotage.api.pods import Pod
from pilotage.localcluster.controllers.plan import NOTHING, Delete, Patch, Plan, plan
from pilotage.localcluster.kubelet.addresses import Addresses, pod_addresses
from pilotage.localcluster.kubelet.nodes import has_kubelet
from pilotage.localcluster.kubelet.status import running, succeeded
from pilotage.localcluster.objects import Cache, Moved
from pilotage.localcluster.rest.timestamps import parse_time

START = "pilotage.dev/start-seconds"
STOP = "pilotage.dev/stop-seconds"
RUN = "pilotage.dev/run-seconds"


class PodKubelets:
    """Keys are pod keys, or node names with a leading `node|` for a node that gained its kubelet."""

    name: ClassVar[str] = "kubelet-pods"
    settle: ClassVar[float] = 0.0

    def __init__(
        self, nodes: Addresses, *, start_seconds: float = 0.5, stop_seconds: float | None = 1.0
    ) -> None:
        """`stop_seconds` None: containers use their whole grace period."""
        self._node_addresses = nodes
        self._addresses = pod_addresses()
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        # UID -> when the pod was first seen bound; UID -> when first seen terminating.
        self._bound_at: dict[str, float] = {}
        self._ending_at: dict[str, float] = {}

    def keys(self, moved: Moved, cache: Cache) -> Iterable[str]:
        if moved.resource == "pods":
            if moved.new is None:
                self._forget(moved.object)
                return ()
            return (moved.new.key,) if _is_news(moved) else ()
        if moved.resource == "nodes" and has_kubelet(moved.new) and not has_kubelet(moved.old):
            return [pod.key for pod in cache.pods_on(moved.object.metadata.name)]
        return ()

    def reconcile(self, key: str, cache: Cache, now: float) -> Plan:
        pod = cache.get("pods", key)
        if not isinstance(pod, Pod) or not pod.spec.node_name:
            return NOTHING
        if not has_kubelet(cache.get("nodes", pod.spec.node_name)):
            return NOTHING
        if pod.metadata.deletion_timestamp is not None:
            return self._stop(pod, now)
        if pod.status.phase in ("", "Pending"):
            return self._start(pod, now)
        if pod.status.phase == "Running":
            return self._end(pod, now)
        return NOTHING

    def _start(self, pod: Pod, now: float) -> Plan:
        since = self._bound_at.setdefault(pod.metadata.uid, now)
        left = since + _seconds(pod, START, self._start_seconds) - now
        if left > 1e-6:
            return plan([], left)
        pod_ip = self._addresses.of(pod.metadata.uid)
        host_ip = self._node_addresses.of(pod.spec.node_name)
        return plan([_status(pod, running(pod, pod_ip, host_ip, now))])

    def _end(self, pod: Pod, now: float) -> Plan:
        seconds = _seconds(pod, RUN, -1.0)
        if seconds < 0:
            return NOTHING
        left = (parse_time(pod.status.start_time) or now) + seconds - now
        return plan([], left) if left > 1e-6 else plan([_status(pod, succeeded(pod, now))])

    def _stop(self, pod: Pod, now: float) -> Plan:
        meta = pod.metadata
        since = self._ending_at.setdefault(meta.uid, now)
        grace = float(meta.deletion_grace_period_seconds or 0)
        usual = grace if self._stop_seconds is None else self._stop_seconds
        wanted = _seconds(pod, STOP, usual) if pod.status.phase == "Running" else 0.0
        left = since + min(wanted, grace) - now
        if left > 1e-6:
            return plan([], left)
        return plan([Delete("pods", meta.namespace, meta.name, meta.uid, grace_seconds=0)])

    def _forget(self, view: KubeObject) -> None:
        uid = view.metadata.uid
        self._addresses.give_back(uid)
        self._bound_at.pop(uid, None)
        self._ending_at.pop(uid, None)


def _is_news(moved: Moved) -> bool:
    """Bound, running, terminating or shortened: the moments at which a kubelet has something to do."""
    old, new = moved.old, moved.new
    if not isinstance(new, Pod) or not new.spec.node_name:
        return False
    return not isinstance(old, Pod) or _moment(old) != _moment(new)


def _moment(pod: Pod) -> tuple[object, ...]:
    meta = pod.metadata
    return (
        meta.uid,
        pod.spec.node_name,
        pod.status.phase,
        meta.deletion_timestamp,
        meta.deletion_grace_period_seconds,
    )


def _status(pod: Pod, status: dict[str, object]) -> Patch:
    meta = pod.metadata
    return Patch("pods", meta.namespace, meta.name, {"status": status}, "status", meta.uid, strategic=True)


def _seconds(pod: Pod, annotation: str, default: float) -> float:
    text = (pod.metadata.annotations or {}).get(annotation, "")
    try:
        return max(0.0, float(text)) if text else default
    except ValueError:
        return default
