"""Builders and a rig for tests of the call queue: fake time, fake answers, every ticket accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pilotage.api.meta import Condition, KubeObject, ObjectMeta
from pilotage.api.pods import Pod, PodSpec, PodStatus
from pilotage.api.wire import Response
from pilotage.calls.defaults import default_call_types
from pilotage.calls.lanes import Allowance
from pilotage.calls.queue import CallQueue
from pilotage.calls.reports import Dispatch, Finished
from pilotage.calls.types import Lane, NoAnswer, Result
from pilotage.framework.calls import (
    BindPod,
    Call,
    CallResult,
    ObjectKey,
    Outcome,
    PatchPodStatus,
    RecordEvent,
)

EPOCH = 1_700_000_000.0


def pod_key(name: str = "p", uid: str = "") -> ObjectKey:
    return ObjectKey("pods", "ns", name, uid or f"uid-{name}")


def pod(name: str = "p", version: int = 1, uid: str = "", **parts: Any) -> Pod:
    """`parts`: node, nominated, conditions, labels."""
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            uid=uid or f"uid-{name}",
            resource_version=str(version),
            labels=parts.get("labels"),
        ),
        spec=PodSpec(node_name=parts.get("node", "")),
        status=PodStatus(conditions=parts.get("conditions"), nominated_node_name=parts.get("nominated", "")),
    )


def unschedulable(message: str = "no room", **parts: Any) -> Condition:
    return Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message, **parts)


def patch(
    message: str = "no room",
    name: str = "p",
    node: str | None = None,
    conditions: Sequence[Condition] | None = None,
) -> PatchPodStatus:
    found = (unschedulable(message),) if conditions is None else tuple(conditions)
    return PatchPodStatus(pod_key(name), found, node)


def bind(name: str = "p", node: str = "n1") -> BindPod:
    return BindPod(pod_key(name), node)


def event(name: str = "p", note: str = "no room", reason: str = "FailedScheduling") -> RecordEvent:
    return RecordEvent(pod_key(name), "Warning", reason, "Scheduling", note)


def status(code: int, reason: str = "", message: str = "", **headers: str) -> Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(code, msgspec.json.encode(body), named)


def ok(found: KubeObject | None = None, code: int = 200) -> Response:
    body = {"kind": "Status", "status": "Success"} if found is None else found
    return Response(code, msgspec.json.encode(body))


LOST = NoAnswer(sent=True, error="connection reset")
REFUSED = NoAnswer(sent=False, error="connection refused")


@dataclass
class Rig:
    queue: CallQueue = field(default_factory=lambda: CallQueue(default_call_types("host")))
    now: float = EPOCH
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    ended: list[Finished] = field(default_factory=list)
    tickets: int = 0
    check_every: int = 1  # steps between checks of the invariants
    steps: int = 0

    def offer(self, call: Call, base: KubeObject | None = None) -> int:
        self.tickets += 1
        self.note(self.queue.offer(call, self.now, self.tickets, base))
        return self.tickets

    def take(self, room: int = 100, spare: int = 0) -> list[Dispatch]:
        reserve = {lane: spare for lane in Lane if lane is not Lane.BIND}
        taken = self.queue.take(self.now, Allowance(room, reserve))
        self.note(self.queue.collect())
        return taken

    def one(self) -> Dispatch:
        (dispatch,) = self.take()
        return dispatch

    def answer(self, dispatch: Dispatch, result: Result) -> None:
        self.note(self.queue.finish(dispatch.id, result, self.now))

    def sync(self, found: KubeObject) -> KubeObject:
        synced = self.queue.sync("pods", found, self.now)
        self.note(synced.finished)
        return synced.object

    def cancel(self, uid: str, why: str = "deleted") -> None:
        self.note(self.queue.cancel(uid, why, self.now))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def result(self, ticket: int) -> CallResult | None:
        outcome = self.outcomes.get(ticket)
        return outcome.result if outcome is not None else None

    def note(self, ended: Sequence[Finished]) -> None:
        self.steps += 1
        if self.steps % self.check_every == 0:
            self.queue.check_invariants()
        for one in ended:
            self.ended.append(one)
            if one.ticket is not None:
                assert one.ticket not in self.outcomes, f"ticket {one.ticket} ended twice"
                self.outcomes[one.ticket] = one.outcome


def body_of(dispatch: Dispatch) -> Any:
    return msgspec.json.decode(dispatch.request.body)
