"""A pod that goes, or has to make room, before its bind was sent ends in memory and leaves nothing (A11).

Every stage before the sending (waiting at Permit, in PreBind, its volumes awaited, its bind or its claim's
write queued behind the client's rate limit) meets every end (deleted, preempted), with the calls
asynchronous and awaited: no write is sent for it, Unreserve runs once, in reverse order, and
reservations, nominations, waiting places, tickets and tasks are as they were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pilotage.framework.plugin import PermitResult
from pilotage.framework.status import SUCCESS, Status, wait
from pilotage.localcluster.cluster import ServiceSettings
from pilotage.plugins import default_registry
from pilotage.runtime.config import load_settings
from pilotage.testing.builders import claim, priority_class, storage_class, uses
from pilotage.testing.harness import Harness

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
OUTSIDE = "example.com/outside"
WRITES = ("POST", "PUT", "PATCH", "DELETE")
SEQUENTIAL = {"SchedulerAsyncAPICalls": False}
both = pytest.mark.parametrize("gates", [{}, SEQUENTIAL], ids=["async", "sequential"])


class Reserving:
    """Writes down for pod `l` who reserved and who undid it; holds it where it is told to."""

    def __init__(self, name: str, log: list[str], held_at: str) -> None:
        self.name, self.log, self.held_at = name, log, held_at

    def _note(self, pod: Any, what: str) -> bool:
        is_ours = bool(pod.pod.metadata.name == "l")
        if is_ours:
            self.log.append(f"{what} {self.name}")
        return is_ours

    def reserve(self, cycle: object, pod: Any, node: str) -> Status:
        self._note(pod, "reserve")
        return SUCCESS

    def unreserve(self, cycle: object, pod: Any, node: str) -> None:
        self._note(pod, "unreserve")

    def permit(self, cycle: object, pod: Any, node: str) -> PermitResult:
        is_held = self.held_at == "permit" and pod.pod.metadata.name == "l"
        return PermitResult(wait(), 600.0) if is_held else PermitResult(SUCCESS)

    async def pre_bind(self, cycle: object, pod: Any, node: str) -> Status:
        if self.held_at == "pre_bind" and pod.pod.metadata.name == "l":
            await asyncio.sleep(600.0)
        return SUCCESS


@contextmanager
def world(gates: dict[str, bool], held_at: str, qps: float = 50) -> Iterator[tuple[Harness, list[str]]]:
    """A node of 4 CPU, with two plugins that reserve."""
    log: list[str] = []
    registry = default_registry()
    for name in ("First", "Second"):
        where = held_at if name == "Second" else ""
        registry.register(name, lambda args, handle, name=name, where=where: Reserving(name, log, where))
    config = {
        **HEADER,
        "clientConnection": {"qps": qps, "burst": max(1, int(qps))},
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"multiPoint": {"enabled": [{"name": "First"}, {"name": "Second"}]}},
            }
        ],
    }
    services = ServiceSettings(leases=False, external_provisioners=(OUTSIDE,))
    with Harness(
        seed=1, registry=registry, settings=load_settings(config, registry, gates), services=services
    ) as h:
        h.create(priority_class(100), storage_class("slow", provisioner=OUTSIDE))
        h.create(h.node("n1", cpu=4))
        h.run_for(5)
        yield h, log


def deleted(h: Harness) -> None:
    h.delete("pods", "l", grace=0)


def preempted(h: Harness) -> None:
    h.create(h.pod("h", cpu=4, priority=100))


ends = pytest.mark.parametrize("end", [deleted, preempted])
End = Callable[[Harness], None]


def writes_for_l(h: Harness, since: float) -> list[str]:
    """But for conditions and events, which tell of what happened in memory."""
    paths = r"/pods/l(/binding)?$|/persistentvolumeclaims/data$"
    found = h.requests(client="scheduler", path=paths, since=since)
    return [record.line() for record in found if record.method in WRITES]


def tasks(h: Harness) -> int:
    return len(asyncio.all_tasks(h.loop))


def check_nothing_is_left(h: Harness, log: list[str], before: int, end: End, since: float) -> None:
    assert log == ["reserve First", "reserve Second", "unreserve Second", "unreserve First"]
    assert writes_for_l(h, since) == []
    if end is deleted:
        h.create(h.pod("h", cpu=4))
    h.run_until_running("h", timeout=30)
    h.run_for(30)
    seen = h.engine.statistics()
    assert (seen.assumed_pods, seen.binding, seen.waiting_permits, seen.asks) == (0, 0, 0, 0)
    assert (seen.in_flight, len(h.engine.cluster.nominations)) == (0, 0)
    assert h.engine.cluster.volumes.promising == frozenset()
    assert h.scheduler.calls.is_idle
    assert tasks(h) == before
    assert writes_for_l(h, since) == []
    h.check_converged()


@both
@ends
@pytest.mark.parametrize("held_at", ["permit", "pre_bind"])
def test_held_by_a_plugin(held_at: str, end: End, gates: dict[str, bool]) -> None:
    with world(gates, held_at) as (h, log):
        before, since = tasks(h), h.now
        h.create(h.pod("l", cpu=4))
        h.run_until(lambda: h.engine.statistics().binding == 1)
        h.run_for(2)
        end(h)
        h.settle()
        check_nothing_is_left(h, log, before, end, since)


@both
@ends
def test_while_its_volumes_are_awaited(end: End, gates: dict[str, bool]) -> None:
    """The claim's write was sent; the promise in memory goes, the claim stays its owner's."""
    with world(gates, "") as (h, log):
        before = tasks(h)
        h.create(claim("data", "slow"), h.pod("l", cpu=4, volumes=uses("data")))
        h.run_until(
            lambda: h.get("pvc", "data")["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
        )
        h.run_for(2)
        since = h.now
        end(h)
        h.settle()
        check_nothing_is_left(h, log, before, end, since)


@both
@ends
def test_while_its_bind_waits_behind_the_rate_limit(end: End, gates: dict[str, bool]) -> None:
    """One request a second: the bind of `first` takes the only token, that of `l` waits."""
    with world(gates, "", qps=1) as (h, log):
        before = tasks(h)
        h.create(h.pod("first"))
        h.run_until_bound("first")
        since = h.now
        h.create(h.pod("l", cpu=4))
        ended_in_the_queue(h, end)
        check_nothing_is_left(h, log, before, end, since)


@pytest.mark.parametrize(
    ("end", "gates"),
    # With awaited calls a preemptor is decided only when the nomination of `l` was written, and the
    # claim's write goes before that.
    [(deleted, {}), (preempted, {}), (deleted, SEQUENTIAL)],
)
def test_while_the_write_of_its_claim_waits_behind_the_rate_limit(end: End, gates: dict[str, bool]) -> None:
    with world(gates, "", qps=1) as (h, log):
        before = tasks(h)
        h.create(claim("data", "slow"), h.pod("first"))
        h.run_until_bound("first")
        since = h.now
        h.create(h.pod("l", cpu=4, volumes=uses("data")))
        ended_in_the_queue(h, end)
        check_nothing_is_left(h, log, before, end, since)


def ended_in_the_queue(h: Harness, end: End) -> None:
    h.run_until(lambda: h.engine.statistics().binding == 1, timeout=0.5)
    assert not h.scheduler.calls.is_idle
    end(h)
    h.settle()


@both
def test_a_bind_behind_the_limit_is_sent_when_nobody_ends_it(gates: dict[str, bool]) -> None:
    """That the stories above can fail."""
    with world(gates, "", qps=1) as (h, log):
        h.create(h.pod("first"))
        h.run_until_bound("first")
        since = h.now
        h.create(h.pod("l", cpu=4))
        h.run_until_running("l", timeout=10)
        assert len(writes_for_l(h, since)) == 1
        assert log == ["reserve First", "reserve Second"]
