"""The call queue under any interleaving of wishes, answers, informers, deletions and time.

At most one request in flight per object; every wish gets exactly one outcome; the newest wish is never
lost; the queue ends empty; a bound pod never gets PodScheduled=False; no two nodes get one pod.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from callkit import Rig, bind, event, patch, pod
from pilotage.api.meta import Condition
from pilotage.api.pods import Pod
from pilotage.api.wire import Response
from pilotage.calls.reports import Dispatch
from pilotage.calls.types import NoAnswer, Result
from pilotage.framework.calls import CallResult

NAMES = ("a", "b")
ANSWERS = ("ok", "ok", "ok", "lost_before", "lost_after", "refused", "429", "500", "403")
PLUGIN = Condition(type="example.com/Checked", status="True", reason="Ok", message="")

names = st.sampled_from(NAMES)
messages = st.sampled_from(("one", "two", "three"))
nodes = st.sampled_from((None, "", "n1", "n2"))
steps = st.one_of(
    st.tuples(st.just("patch"), names, messages, nodes),
    st.tuples(st.just("plugin"), names),
    st.tuples(st.just("bind"), names, st.sampled_from(("n1", "n2"))),
    st.tuples(st.just("event"), names, messages),
    st.tuples(st.just("take"), st.integers(1, 4), st.integers(0, 2)),
    st.tuples(st.just("answer"), st.integers(0, 2), st.sampled_from(ANSWERS)),
    st.tuples(st.just("serve"), st.sampled_from(ANSWERS)),
    st.tuples(st.just("serve"), st.sampled_from(ANSWERS)),
    st.tuples(st.just("informer"), names),
    st.tuples(st.just("label"), names),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("time"), st.sampled_from((0.05, 1.0, 15.0))),
)


@dataclass
class Server:
    """What the API server would do with the requests of the queue, as far as pods are concerned."""

    pods: dict[str, Pod] = field(default_factory=lambda: {name: pod(name) for name in NAMES})
    version: int = 1
    bound: dict[str, list[str]] = field(default_factory=dict)

    def write(self, name: str, changed: Pod) -> Pod:
        self.version += 1
        meta = msgspec.structs.replace(changed.metadata, resource_version=str(self.version))
        self.pods[name] = msgspec.structs.replace(changed, metadata=meta)
        return self.pods[name]

    def serve(self, dispatch: Dispatch) -> Response:
        request, name = dispatch.request, dispatch.key.name
        if dispatch.call_type == "event":
            return Response(201, b"{}")
        found = self.pods.get(name)
        if found is None:
            return Response(404, b'{"reason":"NotFound"}')
        if request.method == "GET":
            return Response(200, msgspec.json.encode(found))
        if request.method == "POST":
            return self.bind(found, msgspec.json.decode(request.body)["target"]["name"])
        return self.patch(found, msgspec.json.decode(request.body))

    def bind(self, found: Pod, node: str) -> Response:
        name = found.metadata.name
        if found.spec.node_name:
            return Response(409, b'{"reason":"Conflict"}')
        spec = msgspec.structs.replace(found.spec, node_name=node)
        self.write(name, msgspec.structs.replace(found, spec=spec, status=Pod().status))
        self.bound.setdefault(name, []).append(node)
        return Response(201, b"{}")

    def patch(self, found: Pod, body: dict[str, dict[str, object]]) -> Response:
        if body["metadata"]["resourceVersion"] != found.metadata.resource_version:
            return Response(409, b'{"reason":"Conflict"}')
        conditions = msgspec.convert(body["status"].get("conditions", []), list[Condition])
        types = {c.type for c in conditions}
        assert not (found.spec.node_name and "PodScheduled" in types), "PodScheduled patched on a bound pod"
        kept = [c for c in found.status.conditions or () if c.type not in types]
        node = body["status"].get("nominatedNodeName", found.status.nominated_node_name) or ""
        status = msgspec.structs.replace(
            found.status, conditions=[*kept, *conditions], nominated_node_name=str(node)
        )
        changed = self.write(found.metadata.name, msgspec.structs.replace(found, status=status))
        return Response(200, msgspec.json.encode(changed))


@dataclass
class World:
    rig: Rig = field(default_factory=Rig)
    server: Server = field(default_factory=Server)
    out: list[Dispatch] = field(default_factory=list)
    asked: dict[int, str] = field(default_factory=dict)
    binds: dict[int, tuple[str, str]] = field(default_factory=dict)
    # Newest wish per pod: message of the condition and whether a bind followed it.
    newest: dict[str, str] = field(default_factory=dict)
    spoiled: set[str] = field(default_factory=set)  # pods whose calls were refused for good or cancelled

    def step(self, step: tuple[object, ...]) -> None:
        getattr(self, f"do_{step[0]}")(*step[1:])
        keys = [d.key for d in self.out if d.call_type != "event"]
        assert len(keys) == len(set(keys)), "two requests in flight for one object"

    def do_patch(self, name: str, message: str, node: str | None) -> None:
        self.offer(replace(patch(message, name), nominated_node=node), name)
        self.newest[name] = message

    def do_plugin(self, name: str) -> None:
        self.offer(patch(name=name, conditions=[PLUGIN]), name)

    def do_bind(self, name: str, node: str) -> None:
        self.binds[self.offer(bind(name, node), name)] = (name, node)
        self.spoiled.add(name)  # a patch may now rightly be superseded

    def do_event(self, name: str, note: str) -> None:
        self.offer(event(name, note), name)

    def offer(self, call: object, name: str) -> int:
        ticket = self.rig.offer(call, self.server.pods.get(name))  # type: ignore[arg-type]
        self.asked[ticket] = name
        return ticket

    def do_take(self, room: int, spare: int) -> None:
        self.out += self.rig.take(room, spare)

    def do_answer(self, index: int, kind: str) -> None:
        if self.out:
            dispatch = self.out.pop(index % len(self.out))
            self.rig.answer(dispatch, self.result(dispatch, kind))

    def do_serve(self, kind: str) -> None:
        """All that may go leaves and is answered at once."""
        self.do_take(9, 0)
        for _ in range(len(self.out)):
            self.do_answer(0, kind)

    def result(self, dispatch: Dispatch, kind: str) -> Result:
        if kind in ("ok", "lost_after"):
            response = self.server.serve(dispatch)
            return response if kind == "ok" else NoAnswer(True, "reset")
        if kind in ("lost_before", "refused"):
            return NoAnswer(kind == "lost_before", kind)
        if kind == "403":
            self.spoiled.add(dispatch.key.name)
        return Response(int(kind), b"{}")

    def do_informer(self, name: str) -> None:
        if name in self.server.pods:
            self.rig.sync(self.server.pods[name])

    def do_label(self, name: str) -> None:
        if name in self.server.pods:
            self.server.write(name, self.server.pods[name])

    def do_delete(self, name: str) -> None:
        self.spoiled.add(name)
        self.server.pods.pop(name, None)
        self.rig.cancel(f"uid-{name}")

    def do_time(self, seconds: float) -> None:
        self.rig.pass_time(seconds)

    def finish(self) -> None:
        """Everything is answered from now on."""
        for _ in range(200):
            while self.out:
                self.do_answer(0, "ok")
            if self.rig.queue.is_idle:
                return
            self.out += self.rig.take()
            if not self.out:
                self.rig.pass_time(max(0.1, (self.rig.queue.next_wakeup() or self.rig.now) - self.rig.now))
        raise AssertionError("the queue does not run empty")


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, max_size=40))
def test_any_interleaving(script: list[tuple[object, ...]]) -> None:
    world = World()
    for step in script:
        world.step(step)
    world.finish()
    assert set(world.rig.outcomes) == set(world.asked), "a wish without an outcome"
    for name, message in world.newest.items():
        found = world.server.pods.get(name)
        if found is not None and name not in world.spoiled and not _gave_up(world, name):
            condition = found.condition("PodScheduled")
            assert condition is not None, f"{name}: the newest wish was lost"
            assert condition.message == message, f"{name}: the newest wish was lost"
    assert all(len(bound) == 1 for bound in world.server.bound.values())
    for ticket, (name, node) in world.binds.items():
        outcome = world.rig.outcomes[ticket]
        bound = world.server.bound.get(name, [])
        assert outcome.result is not CallResult.DONE or bound == [node], "told bound, and it is not"
        assert outcome.status != 409 or bound != [node], "told in conflict, and it is bound as wished"
    statistics = world.rig.queue.statistics(world.rig.now)
    assert not statistics.pending
    assert not statistics.in_flight


def _gave_up(world: World, name: str) -> bool:
    """Whether a patch of the pod ran out of tries or time."""
    return any(
        one.key.name == name
        and one.outcome.result is CallResult.FAILED
        and one.call_type == "pod_status_patch"
        for one in world.rig.ended
    )
