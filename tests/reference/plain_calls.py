"""The call queue's specification as a world of two pods: what may be sent, and how each wish must end.

Written from the requirements, not from the queue: a server that keeps two pods, the wishes that are open,
and rules that are checked after each step. `Step`s are all that can happen to a queue; `explore` in
`properties/test_call_queue_model.py` tries them in every order.

Rules, by requirement:
A3  the most relevant open wish is the one that is sent; less relevant ones end at once; of two status
    patches the newer text is sent; what the pod shows already is never sent
A4  at most one request is out per pod
A5  what was wished while a request was out is looked at when it ended: sent, or needless by then
A6  what a write returned and what informers brought is kept: nothing is computed on an older version
A7  a wish that failed leaves nothing behind in what decisions see
A8  each wish ends exactly once, and how it ends is true of the server
A9  a bind or delete that went unanswered is read back before anything else is sent to the pod
A10 a pod gets one node, and no PodScheduled=False once it has it
A11 after a cancellation nothing is sent that was wished before it, save to find out what became of it
A13 at most one waiting wish per pod and type; nothing is left when all has ended
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from callkit import EPOCH, LOST, Rig, bind, patch, pod, status
from pilotage.api.pods import Pod
from pilotage.api.wire import Response
from pilotage.calls.pod_binding import PodBinding
from pilotage.calls.pod_eviction import PodEviction
from pilotage.calls.pod_status_patch import PodStatusPatch
from pilotage.calls.queue import CallQueue
from pilotage.calls.registry import CallTypes
from pilotage.calls.reports import Dispatch
from pilotage.calls.types import Phase
from pilotage.framework.calls import CallResult, EvictPod

RELEVANCE = {"pod_status_patch": 1, "pod_binding": 2, "pod_eviction": 3}
PASS_SECONDS = 6.0  # longer than any delay of the first tries, too short for any age
TIME = "2026-01-01T00:00:00Z"
OTHERS_NODE = "n9"


@dataclass(frozen=True, slots=True)
class Step:
    what: str
    name: str = ""
    detail: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.name, self.detail) if part)


@dataclass(slots=True)
class Wish:
    ticket: int
    call_type: str
    content: str  # message or node
    cancelled: bool = False
    is_true: bool = False  # the same was acknowledged while it was open


@dataclass
class PlainServer:
    """One pod as an API server keeps it."""

    name: str
    version: int = 1
    node: str = ""
    message: str = ""
    leaving: bool = False
    binds: int = 0

    def view(self) -> Pod:
        conditions = patch(self.message).conditions if self.message and not self.node else None
        found = pod(self.name, self.version, node=self.node, conditions=list(conditions or ()))
        if not self.leaving:
            return found
        meta = msgspec.structs.replace(found.metadata, deletion_timestamp=TIME)
        return msgspec.structs.replace(found, metadata=meta)

    def serve(self, dispatch: Dispatch) -> Response:
        request = dispatch.request
        body = msgspec.json.decode(request.body) if request.body else {}
        if request.method == "GET":
            return Response(200, msgspec.json.encode(self.view()))
        if request.method == "DELETE":
            self._change(leaving=True)
            return Response(200, msgspec.json.encode(self.view()))
        if request.method == "POST":
            return self._bind(body)
        return self._patch(body)

    def _bind(self, body: Any) -> Response:
        if self.node:
            return status(409, "Conflict", "already assigned")
        self.binds += 1
        self._change(node=body["target"]["name"])
        return Response(201, b'{"kind":"Status","status":"Success"}')

    def _patch(self, body: Any) -> Response:
        version = body["metadata"].get("resourceVersion")
        if version is not None and version != str(self.version):
            return status(409, "Conflict", "the object has been modified")
        for condition in body["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled":
                assert not self.node, "A10: PodScheduled=False patched on a bound pod"
                assert condition["message"] != self.message, "A3: sent what the pod shows already"
                self.message = condition["message"]
        self._change()
        return Response(200, msgspec.json.encode(self.view()))

    def _change(self, **parts: Any) -> None:
        for part, value in parts.items():
            setattr(self, part, value)
        self.version += 1


def _rig() -> Rig:
    """With the three types that write pods. Invariants are checked by the world, where it is asked to."""
    return Rig(CallQueue(CallTypes(PodBinding(), PodStatusPatch(), PodEviction())), check_every=10**9)


@dataclass
class PlainWorld:
    """A queue, its server and what the specification knows of them."""

    names: tuple[str, ...] = ("a", "b")
    rig: Rig = field(default_factory=_rig)
    is_checked: bool = True
    pods: dict[str, PlainServer] = field(init=False)
    out: dict[str, Dispatch] = field(default_factory=dict)
    open: dict[str, list[Wish]] = field(init=False)
    newest: dict[str, Pod] = field(init=False)  # as informers or answers showed it: `runtime.newest`
    unread: set[str] = field(default_factory=set)  # pods with a write whose fate must be read first
    seen: int = 0  # ended wishes that were checked

    def __post_init__(self) -> None:
        self.rig.now = EPOCH
        self.pods = {name: PlainServer(name) for name in self.names}
        self.open = {name: [] for name in self.names}
        self.newest = {name: server.view() for name, server in self.pods.items()}

    # What can happen

    def steps(self) -> list[Step]:
        """All that may happen now."""
        found = [Step("take"), Step("pass")]
        for name in self.names:
            found += [Step("patch", name, "one"), Step("patch", name, "two")]
            found += [Step("bind", name, "n1"), Step("evict", name)]
            found += [Step("inform", name), Step("touch", name), Step("cancel", name)]
            if self._version(name) > 1:
                found.append(Step("repeat", name))
            if not self.pods[name].node:
                found.append(Step("foreign", name))
            if name in self.out:
                found += [Step("answer", name, how) for how in ("served", "lost", "busy", "broken")]
        return found

    def do(self, step: Step) -> None:
        getattr(self, f"_{step.what}")(*filter(None, (step.name, step.detail)))
        self._check_all_ended()
        if self.is_checked:
            self.rig.queue.check_invariants()
            self._check_pending()

    def _patch(self, name: str, message: str) -> None:
        self._offer(name, "pod_status_patch", message)

    def _bind(self, name: str, node: str) -> None:
        self._offer(name, "pod_binding", node)

    def _evict(self, name: str) -> None:
        self._offer(name, "pod_eviction", "")

    def _inform(self, name: str) -> None:
        self._shown(name)
        if self.pods[name].node or self.pods[name].leaving:
            self.unread.discard(name)  # informers read, too: its fate is known
        shown = self.rig.sync(self.newest[name])
        if not [wish for wish in self.open[name] if wish.call_type == "pod_status_patch"]:
            assert shown == self.pods[name].view(), "A7: decisions see a change that nobody wishes"

    def _repeat(self, name: str) -> None:
        """An informer that lags shows the pod as it was first."""
        self.rig.sync(PlainServer(name).view())

    def _touch(self, name: str) -> None:
        """Somebody else changes something else."""
        self.pods[name].version += 1

    def _foreign(self, name: str) -> None:
        """Somebody else binds the pod."""
        self.pods[name].node = OTHERS_NODE
        self.pods[name].version += 1

    def _cancel(self, name: str) -> None:
        self.rig.cancel(f"uid-{name}")
        for wish in self.open[name]:
            wish.cancelled = True
        self.unread.discard(name)  # nobody wants to know any more

    def _pass(self) -> None:
        self.rig.pass_time(PASS_SECONDS)

    def _take(self) -> None:
        for dispatch in self.rig.take(room=1):
            name = dispatch.key.name
            assert name not in self.out, "A4: a second request for a pod that has one out"
            self._check_sent(name, dispatch)
            self.out[name] = dispatch

    def _answer(self, name: str, how: str) -> None:
        dispatch = self.out.pop(name)
        if how == "busy":
            self.rig.answer(dispatch, status(429, "TooManyRequests"))
        elif how == "broken":
            self.rig.answer(dispatch, status(500, "InternalError"))
        elif how == "lost":
            self.pods[name].serve(dispatch)
            is_wanted = any(not wish.cancelled for wish in self.open[name])
            if dispatch.request.method in ("POST", "DELETE") and is_wanted:
                self.unread.add(name)
            self.rig.answer(dispatch, LOST)
        else:
            if dispatch.phase is Phase.VERIFY:
                self.unread.discard(name)
            answer = self.pods[name].serve(dispatch)
            if answer.status == 200:
                self._shown(name)
            if answer.status < 300 and dispatch.request.method in ("POST", "DELETE"):
                for wish in self.open[name]:
                    wish.is_true |= wish.call_type == dispatch.call_type
            self.rig.answer(dispatch, answer)

    def _version(self, name: str) -> int:
        return int(self.newest[name].metadata.resource_version)

    def _shown(self, name: str) -> None:
        self.newest[name] = self.pods[name].view()

    # What must hold

    def _offer(self, name: str, call_type: str, content: str) -> None:
        ended = len(self.rig.ended)
        call: Any = {
            "pod_status_patch": lambda: patch(content, name),
            "pod_binding": lambda: bind(name, content),
            "pod_eviction": lambda: EvictPod(bind(name).key, "preempted"),
        }[call_type]()
        before = list(self.open[name])
        ticket = self.rig.offer(call, self.newest[name])
        self.open[name].append(Wish(ticket, call_type, content))
        self._check_offer(before, ticket, call_type, {one.ticket for one in self.rig.ended[ended:]})

    def _check_offer(self, before: list[Wish], ticket: int, call_type: str, ended: set[int | None]) -> None:
        """A3: what the new wish does to the ones that are open, and they to it."""
        relevance = RELEVANCE[call_type]
        if any(RELEVANCE[wish.call_type] > relevance for wish in before):
            assert ticket in ended, "A3: a less relevant wish ends at once"
            others = {self.rig.outcomes[one].result for one in ended - {ticket} if one is not None}
            assert CallResult.OVERWRITTEN not in others, "A3: it ends no wish that is more relevant"
            assert self.rig.result(ticket) is CallResult.SKIPPED
            return
        for wish in before:
            if RELEVANCE[wish.call_type] < relevance and wish.ticket in ended:
                assert self.rig.result(wish.ticket) is CallResult.OVERWRITTEN, "A3: overwritten"
        waiting = [wish for wish in before if wish.ticket not in ended]
        lesser = [wish for wish in waiting if RELEVANCE[wish.call_type] < relevance]
        assert len(lesser) <= 1, "A3: of less relevant wishes only one that is being sent stays"

    def _check_sent(self, name: str, dispatch: Dispatch) -> None:
        wishes = self.open[name]
        alive = [wish for wish in wishes if not wish.cancelled]
        assert wishes, "a request that nobody wishes"
        if name in self.unread:
            assert dispatch.phase is Phase.VERIFY, "A9: something was sent before the pod was read"
        if dispatch.phase is Phase.VERIFY:
            return
        assert alive, "A11: sent what was cancelled"
        mine = [wish for wish in alive if wish.call_type == dispatch.call_type]
        assert mine, f"A3: {dispatch.call_type} is sent, which nobody wishes"
        begun = dispatch.tries > 1
        top = max(RELEVANCE[wish.call_type] for wish in alive)
        assert begun or RELEVANCE[dispatch.call_type] == top, "A3: a less relevant wish is sent first"
        assert not all(wish.is_true for wish in mine), "A5: sent again what was acknowledged"
        if dispatch.call_type == "pod_status_patch" and dispatch.phase is Phase.SEND:
            body = msgspec.json.decode(dispatch.request.body)
            assert body["status"]["conditions"][0]["message"] == mine[-1].content, "A3: an older text is sent"
            assert int(body["metadata"]["resourceVersion"]) >= self._version(name), "A6: on an older version"

    def _check_all_ended(self) -> None:
        for one in self.rig.ended[self.seen :]:
            self._check_ended(one.key.name, one.ticket)
        self.seen = len(self.rig.ended)

    def _check_ended(self, name: str, ticket: int | None) -> None:
        """A8: how a wish ended is true."""
        (wish,) = [one for one in self.open[name] if one.ticket == ticket]
        self.open[name].remove(wish)
        result, server = self.rig.outcomes[wish.ticket].result, self.pods[name]
        if result is CallResult.CANCELLED:
            assert wish.cancelled, "A8: cancelled without a cancellation"
        if result is not CallResult.DONE:
            return
        if wish.call_type == "pod_binding":
            assert server.node == wish.content, "A8: done, and the pod has another node"
        elif wish.call_type == "pod_eviction":
            assert server.leaving, "A8: done, and the pod stays"

    def _check_pending(self) -> None:
        pending = [
            (call.key.name, call.call_type, call.in_flight) for call in self.rig.queue.pending(self.rig.now)
        ]
        out = [name for name, _, in_flight in pending if in_flight]
        assert sorted(out) == sorted(self.out), "A4: what is in flight is what was taken"
        open_types = {(name, wish.call_type) for name, wishes in self.open.items() for wish in wishes}
        assert {(name, kind) for name, kind, _ in pending} == open_types, "A8: open wishes and pending calls"
        for name in self.names:
            own = [kind for owner, kind, _ in pending if owner == name]
            assert len(own) <= 1 + len(set(own)), "A13: more than one waiting wish of a type"
        assert self.rig.queue.is_idle == (not pending)
        for server in self.pods.values():
            assert server.binds <= 1, "A10: bound twice"

    def settle(self) -> None:
        """Everything is answered well from now on: the queue comes to rest, and to the truth (A5, A13)."""
        wished = {name: [w for w in wishes if not w.cancelled] for name, wishes in self.open.items()}
        for _ in range(40):
            for name in list(self.out):
                self.do(Step("answer", name, "served"))
            if self.rig.queue.is_idle:
                break
            self.do(Step("take"))
            if not self.out:
                self.do(Step("pass"))
        assert self.rig.queue.is_idle, "A13: the queue does not come to rest"
        assert not any(self.open.values()), "A8: a wish that never ended"
        for name, wishes in wished.items():
            self._check_truth(self.pods[name], wishes)

    def _check_truth(self, server: PlainServer, wishes: list[Wish]) -> None:
        """A5: the most relevant of what was still wished has come true."""
        if not wishes:
            return
        top = max(wishes, key=lambda wish: RELEVANCE[wish.call_type])
        if top.call_type == "pod_eviction":
            assert server.leaving, "A5: the eviction was lost"
        elif top.call_type == "pod_binding":
            assert server.node, "A5: the bind was lost"
        elif not server.node:
            assert server.message == wishes[-1].content, "A5: the newest text was lost"
