"""deploy/rbac.yaml allows exactly what the scheduler asks for: compared with the requests of a busy run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from pilotage.api.kinds import by_path
from pilotage.localcluster.inprocess import InProcessTransport
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.server import ApiServer, make_store
from pilotage.runtime.config_validate import LeaderElection
from pilotage.runtime.leader_election import Elector
from pilotage.testing import virtualtime
from pilotage.testing.builders import priority_class
from pilotage.testing.faults import Faults
from pilotage.testing.faultytransport import FaultyTransport
from pilotage.testing.harness import Harness
from pilotage.testing.requestlog import Record

MANIFEST = Path(__file__).parents[2] / "deploy" / "rbac.yaml"
MANUAL = "kubernetes.io/no-provisioner"
Right: TypeAlias = tuple[str, str, str]  # group, resource with subresource, verb


def rules(kind: str) -> list[Mapping[str, Any]]:
    (found,) = [tree for tree in yaml.safe_load_all(MANIFEST.read_text()) if tree["kind"] == kind]
    return list(found["rules"])


def allowed(kind: str) -> set[Right]:
    return {
        (group, resource, verb)
        for rule in rules(kind)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def asked(records: list[Record]) -> Iterator[Right]:
    for record in records:
        found = by_path(record.path.partition("?")[0])
        if found is None:
            assert record.verb == "get", record.line()  # discovery, which every account may read
            continue
        part = f"/{found.subresource}" if found.subresource else ""
        yield found.kind.group, found.kind.plural + part, record.verb


def busy(h: Harness) -> None:
    """Binds, conditions, an eviction, a claim of each mode, and writes that have to read again."""
    h.create(priority_class(100), h.storage_class("late"), h.storage_class("local", provisioner=MANUAL))
    h.create(h.node("n1", cpu=5), h.node("n2", cpu=5))
    h.create(h.local_volume("disk", "local", "n1"))
    h.create(h.claim("dynamic", "late"), h.claim("static", "local"))
    h.run_for(1)
    for name in ("dynamic", "static"):
        h.create(h.pod(name, cpu=1, volumes=h.uses(name)))
    h.create(h.pod("low1", cpu=3, grace=0), h.pod("low2", cpu=3, grace=0), h.pod("big", cpu=9))
    h.run_for(5)
    h.faults.lose_answer(path="/binding$", times=1)
    h.faults.answer(409, path="/status$", method="PATCH", client="scheduler", times=1)
    h.create(h.pod("high", cpu=3, priority=100), h.pod("small", cpu="10m"), h.pod("big2", cpu=9))
    h.run_until_bound("high", "small", timeout=30)


def test_the_cluster_role_is_what_the_scheduler_asks_for() -> None:
    with Harness(seed=1) as h:
        busy(h)
        used = set(asked(h.requests(client="scheduler")))
    seldom = {("", resource, "get") for resource in ("persistentvolumes", "persistentvolumeclaims")}
    assert used <= allowed("ClusterRole"), used - allowed("ClusterRole")
    assert allowed("ClusterRole") <= used | seldom, allowed("ClusterRole") - used - seldom


def test_the_role_is_what_leader_election_asks_for() -> None:
    (created, held) = rules("Role")
    assert created["verbs"] == ["create"]
    assert held["resourceNames"] == [LeaderElection().resource_name, "pilotage"]
    faults = Faults()

    async def elect() -> None:
        clock = virtualtime.VirtualClock(asyncio.get_running_loop())
        server = ApiServer(make_store(), Ids(b"rbac"), clock.time())
        door = FaultyTransport(InProcessTransport(server, clock), faults, "scheduler")
        elector = Elector(door, LeaderElection(), "me", clock)
        await elector.acquire()
        holding = asyncio.create_task(elector.hold())
        await asyncio.sleep(30)
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        await elector.release()

    loop = virtualtime.VirtualLoop(max_seconds=100)
    try:
        loop.run_until_complete(elect())
    finally:
        virtualtime.close(loop)
    used = set(asked(faults.log.records))
    assert used - allowed("ClusterRole") == allowed("Role")
