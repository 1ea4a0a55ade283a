"""Informers: what is discovered is watched, changes become facts, and when all is synced."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from pilotage.api.wire import Request, Response
from pilotage.client.transport import TransportError
from pilotage.runtime.informers import Informers
from pilotage.scheduling.messages import Deleted, Event, Undecodable, Upserted
from pilotage.testing import virtualtime
from unit.client.scripted_transport import HANG, ScriptedStream, event, page, pod, status

CORE = ("pods", "nodes", "namespaces", "services")


@dataclass
class Cluster:
    """A server with the core group alone; `lists` and `streams` by plural, empty otherwise."""

    lists: dict[str, Response] = field(default_factory=dict)
    streams: dict[str, ScriptedStream] = field(default_factory=dict)
    resources: tuple[str, ...] = CORE
    down: Callable[[], bool] = lambda: False
    requests: list[Request] = field(default_factory=list)

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        del timeout
        self.requests.append(request)
        if self.down():
            raise TransportError("refused", sent=False)
        if request.path == "/api/v1":
            items = [{"name": name, "verbs": ["list", "watch"]} for name in self.resources]
            return Response(200, json.dumps({"resources": items}).encode())
        if request.path.startswith("/apis/") and request.path.count("/") == 3:
            return status(404, "NotFound")
        return self.lists.get(request.path.rpartition("/")[2], page("5"))

    async def stream(self, request: Request) -> ScriptedStream:
        self.requests.append(request)
        return self.streams.pop(request.path.rpartition("/")[2], ScriptedStream([HANG]))

    async def close(self) -> None:
        pass


def informed(cluster: Cluster, seconds: float = 30.0) -> tuple[list[Event], Informers]:
    events: list[Event] = []

    async def main() -> Informers:
        informers = Informers(cluster, events.append, seed=1)
        task = asyncio.create_task(informers.run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return informers

    return events, virtualtime.run(main())


def test_facts_of_each_form() -> None:
    bad = pod("bad", "3") | {"spec": {"containers": "x"}}
    stream = ScriptedStream([event("ADDED", bad), event("DELETED", pod("a", "6")), HANG])
    events, informers = informed(Cluster({"pods": page("5", pod("a", "1"))}, {"pods": stream}))
    added, failed, gone = events
    assert isinstance(added, Upserted)
    assert added.resource == "pods"
    assert added.object.metadata.name == "a"
    assert isinstance(failed, Undecodable)
    assert (failed.resource, failed.namespace, failed.name, failed.uid) == (
        "pods",
        "default",
        "bad",
        "uid-bad",
    )
    assert "containers" in failed.error
    assert isinstance(gone, Deleted)
    assert gone.object.metadata.uid == "uid-a"
    assert informers.synced.is_set()


def test_only_what_the_server_has_is_watched_and_pods_by_selector() -> None:
    cluster = Cluster()
    _, informers = informed(cluster)
    assert set(informers.statistics()) == set(CORE)
    watches = {r.path: dict(r.query) for r in cluster.requests if r.query.get("watch")}
    assert set(watches) == {f"/api/v1/{plural}" for plural in CORE}
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    assert watches["/api/v1/pods"]["fieldSelector"] == selector
    assert "fieldSelector" not in watches["/api/v1/nodes"]


def test_a_kind_that_cannot_be_listed_keeps_the_rest_unsynced() -> None:
    cluster = Cluster({"services": status(403, "Forbidden")})
    _, informers = informed(cluster)
    assert not informers.synced.is_set()
    assert informers.statistics()["pods"].is_synced
    assert "403" in informers.statistics()["services"].last_error


def test_a_server_without_pods_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    _, informers = informed(Cluster(resources=("nodes",)))
    assert informers.statistics() == {}
    assert "no pods" in caplog.text


def test_a_server_that_is_not_there_yet_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    def down() -> bool:
        return asyncio.get_running_loop().time() < 10.0

    cluster = Cluster(down=down)
    with caplog.at_level(logging.WARNING, logger="pilotage"):
        _, informers = informed(cluster)
    assert informers.synced.is_set()
    assert len(caplog.records) == 1, "one line, not one per try"
