"""Event hints again: which API request wakes a pod that was found unschedulable.

The scenario's objects are created on an embedded API server in this process, the engine is told of them as
its informers would be, and decides the pod once. Then the recorded request is carried out by the same
server, and what changed there is told to the engine: what it does with the pod is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from pilotage.api.decode import DecodeFailure, decode_list
from pilotage.api.kinds import Kind, by_kind
from pilotage.api.meta import KubeObject
from pilotage.api.wire import Request, Response, decode_status
from pilotage.framework.registry import Registry
from pilotage.framework.settings import ProfileSettings, Settings
from pilotage.frontends.replay.compare import Aspect, Limit, Mismatch, Result
from pilotage.frontends.replay.scenarios import HintExpectation, Scenario
from pilotage.frontends.replay.world import UnknownKindError, as_created
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.server import ApiServer, make_store
from pilotage.runtime.watched import field_selector, watched_kinds
from pilotage.scheduling.engine import Engine
from pilotage.scheduling.messages import Deleted, Effect, Queued, Upserted

_BEGIN: Final = 1_767_225_600.0  # any moment will do: 2026-01-01
_LATER: Final = 1.3  # seconds after the attempt, as recorded
_NOT_BUILT: Final = "NotBuiltYet"
_READY_QUEUES: Final = ("active", "backoff")


class RequestRefusedError(Exception):
    """The embedded server did not do what the recorded one did."""


def replay_hint(scenario: Scenario, settings: ProfileSettings, registry: Registry) -> Result:
    """Plays a hint again. Requests that the server refuses are a mismatch, not an exception."""
    assert scenario.expect_hint is not None, "a decision is no hint"
    world = _World(Settings((settings,)), registry)
    try:
        pod = world.create(scenario)
        if world.engine.waits_on(pod) == {_NOT_BUILT}:
            return Result(scenario, limits=frozenset({Limit.NOT_BUILT}))
        effects = world.carry_out(scenario)
    except (RequestRefusedError, UnknownKindError) as exc:
        return Result(scenario, (Mismatch(Aspect.ERROR, "requests that work", str(exc)),))
    return Result(scenario, tuple(_mismatches(scenario.expect_hint, pod, effects)))


def _mismatches(expect: HintExpectation, pod: str, effects: Sequence[Effect]) -> Iterator[Mismatch]:
    moves = [e for e in effects if isinstance(e, Queued) and e.uid == pod and e.queue in _READY_QUEUES]
    if bool(moves) != expect.moved:
        actual = f"moved by {moves[0].event}" if moves else "not moved"
        yield Mismatch(Aspect.MOVED, f"moved by {expect.label}" if expect.moved else "not moved", actual)
    elif moves and expect.label is not None and moves[0].event != expect.label:
        yield Mismatch(Aspect.LABEL, expect.label, moves[0].event)


class _World:
    """An API server and an engine that sees everything on it."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self.engine = Engine(settings, registry, seed=0)
        self._server = ApiServer(make_store(), Ids(b"replay"), _BEGIN)
        self._now = _BEGIN
        self._shown: dict[tuple[str, str], KubeObject] = {}

    def create(self, scenario: Scenario) -> str:
        """Creates everything and lets the engine decide the pod once; returns the pod's UID."""
        for tree in as_created(scenario):
            self._create(tree)
            self._inform()
        self.engine.schedule(self._now, 1)
        meta = scenario.pod["metadata"]
        return self._shown["pods", f"{meta.get('namespace', 'default')}/{meta['name']}"].metadata.uid

    def carry_out(self, scenario: Scenario) -> list[Effect]:
        self._now += _LATER
        for request in scenario.requests:
            body = b"" if request.body is None else msgspec.json.encode(request.body)
            path, _, query = request.path.partition("?")
            self._ask(Request(request.method, path, dict(parse_qsl(query)), body, request.type))
        return self._inform()

    def _create(self, tree: dict[str, Any]) -> None:
        kind = by_kind(tree.get("apiVersion", ""), tree.get("kind", ""))
        if kind is None:
            raise UnknownKindError(f"unknown kind {tree.get('kind')} of {tree.get('apiVersion')}")
        meta = tree["metadata"]
        namespace = meta.get("namespace", "default") if kind.namespaced else ""
        self._ask(Request("POST", kind.collection_path(namespace), body=msgspec.json.encode(tree)))
        if "status" in tree and kind.subresource("status") is not None:
            path = kind.object_path(namespace, meta["name"], "status")
            body = msgspec.json.encode({"status": tree["status"]})
            self._ask(Request("PATCH", path, body=body, content_type="application/merge-patch+json"))

    def _ask(self, request: Request) -> Response:
        answer = self._server.handle(request, self._now)
        assert isinstance(answer, Response)
        if answer.status >= 300:
            status = decode_status(answer.body)
            text = status.message if status is not None else f"HTTP {answer.status}"
            raise RequestRefusedError(f"{request.method} {request.path}: {text}")
        return answer

    # -- informers -------------------------------------------------------------------------------

    def _inform(self) -> list[Effect]:
        """Tells the engine what is different on the server."""
        effects: list[Effect] = []
        for kind in watched_kinds():
            effects += self._inform_of(kind)
        return effects

    def _inform_of(self, kind: Kind) -> list[Effect]:
        query = {"fieldSelector": selector} if (selector := field_selector(kind)) else {}
        answer = self._ask(Request("GET", kind.collection_path(""), query))
        page = decode_list(kind, answer.body)
        found = {item.key: item for item in page.items if not isinstance(item, DecodeFailure)}
        effects: list[Effect] = []
        for resource, key in [known for known in self._shown if known[0] == kind.resource]:
            if key not in found:
                effects += self.engine.handle(Deleted(resource, self._shown.pop((resource, key))), self._now)
        for key, item in found.items():
            if self._shown.get((kind.resource, key)) != item:
                self._shown[kind.resource, key] = item
                effects += self.engine.handle(Upserted(kind.resource, item), self._now)
        return effects
