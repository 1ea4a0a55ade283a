"""PATCH pods/status: the conditions and the nomination that the scheduler owns, on the newest object.

Laws:
- The patch carries the resourceVersion it was computed on. On 409 it is computed again on the newest
  object and sent again; so a label change never loses it, and it never lands on a pod bound meanwhile.
- PodScheduled and the nomination are superseded by a binding, pending, in flight or seen. Conditions of
  other types (plugins') survive and are sent after it.
- Nothing is sent when status, reason and message of every condition and the nomination are as wished.
- lastTransitionTime moves only when the condition's status does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from pilotage.api.meta import Condition, KubeObject, ObjectMeta, View
from pilotage.api.pods import Pod, PodSpec, PodStatus
from pilotage.api.wire import Request, Response
from pilotage.calls.answers import is_success, status_of
from pilotage.calls.base import BaseCallType
from pilotage.calls.paths import object_path
from pilotage.calls.types import Lane, Relevance, RetryPolicy, Sent
from pilotage.calls.verdicts import Rebase, Retry, Skip, Verdict
from pilotage.framework.calls import BindPod, Call, CallResult, Outcome, PatchPodStatus

POD_SCHEDULED = "PodScheduled"
_decoder = msgspec.json.Decoder(Pod)


class _Node(View, frozen=True):
    node_name: str = ""


class _Outline(View, frozen=True):
    """What the patch is computed on, of a pod whose spec cannot be read."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Node = _Node()
    status: PodStatus = PodStatus()


_outline_decoder = msgspec.json.Decoder(_Outline)


class PodStatusPatch(BaseCallType[PatchPodStatus]):
    name = "pod_status_patch"
    relevance: int = Relevance.STATUS
    retry = RetryPolicy(tries=10, first_delay=0.1, max_delay=10.0, max_age=120.0, timeout=60.0)

    def lane(self, call: PatchPodStatus) -> Lane:
        if not call.nominated_node:
            return Lane.STATUS
        return Lane.BIND if call.precedes_eviction else Lane.NOMINATION

    def merge(self, old: PatchPodStatus, new: PatchPodStatus) -> PatchPodStatus:
        newer = {condition.type for condition in new.conditions}
        kept = tuple(c for c in old.conditions if c.type not in newer)
        node = old.nominated_node if new.nominated_node is None else new.nominated_node
        urgent = old.precedes_eviction or new.precedes_eviction
        return PatchPodStatus(new.key, kept + new.conditions, node, urgent)

    def remainder(self, call: PatchPodStatus, by: Call) -> PatchPodStatus | None:
        return _plugins_part(call) if isinstance(by, BindPod) else None

    def rebase(self, call: PatchPodStatus, newest: KubeObject) -> PatchPodStatus | Outcome:
        if not isinstance(newest, Pod) or not newest.spec.node_name:
            return call
        return _plugins_part(call) or Outcome(CallResult.SKIPPED, "the pod is bound")

    def is_no_op(self, call: PatchPodStatus, base: KubeObject) -> bool:
        return isinstance(base, Pod) and not _changed(call, base) and not _moves_nomination(call, base)

    def apply(self, call: PatchPodStatus, base: KubeObject) -> KubeObject:
        if not isinstance(base, Pod):
            return base
        changed = {c.type: _kept_time(c, base, None) for c in _changed(call, base)}
        if not changed and not _moves_nomination(call, base):
            return base
        untouched = [c for c in base.status.conditions or () if c.type not in changed]
        node = base.status.nominated_node_name if call.nominated_node is None else call.nominated_node
        status = msgspec.structs.replace(
            base.status, conditions=[*untouched, *changed.values()], nominated_node_name=node
        )
        return msgspec.structs.replace(base, status=status)

    def reads_first(self, call: PatchPodStatus) -> bool:
        return True

    def read(self, call: PatchPodStatus) -> Request:
        return Request("GET", object_path(call.key))

    def requests(self, call: PatchPodStatus, base: KubeObject | None, now: float) -> Sequence[Request]:
        assert isinstance(base, Pod), "a status patch is computed on the newest pod"
        status: dict[str, Any] = {}
        changed = [_as_tree(_kept_time(c, base, now)) for c in _changed(call, base)]
        if changed:
            status["conditions"] = changed
        if _moves_nomination(call, base):
            status["nominatedNodeName"] = call.nominated_node or None
        meta = {"uid": call.key.uid, "resourceVersion": base.metadata.resource_version}
        body = msgspec.json.encode({"metadata": meta, "status": status})
        path = object_path(call.key, "status")
        return (Request("PATCH", path, body=body, content_type="application/strategic-merge-patch+json"),)

    def decode(self, body: bytes) -> Pod | None:
        try:
            pod = _decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return pod if pod.metadata.uid else None

    def on_read(self, sent: Sent[PatchPodStatus], response: Response) -> Verdict:
        verdict = super().on_read(sent, response)
        if isinstance(verdict, Retry) and is_success(response):
            outline = _outlined(response.body)
            if outline is not None and outline.metadata.uid == sent.call.key.uid:
                return Rebase("", outline)
        return verdict

    def on_conflict(self, sent: Sent[PatchPodStatus], response: Response) -> Verdict:
        status = status_of(response)
        return Rebase(status.message, None, 409, status.reason)

    def on_error(self, sent: Sent[PatchPodStatus], response: Response) -> Verdict:
        if response.status == 404:
            return Skip("the pod is gone", 404, "NotFound")
        return super().on_error(sent, response)


def _outlined(body: bytes) -> Pod | None:
    """The pod without what cannot be read: it is told so in its status all the same.

    Never an answer of `decode`: what that gives is believed by the engine, and this has no requests.
    """
    try:
        found = _outline_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    spec = PodSpec(node_name=found.spec.node_name)
    return Pod(metadata=found.metadata, spec=spec, status=found.status)


def timestamp(now: float) -> str:
    """RFC 3339 with whole seconds, as metav1.Time is written."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _plugins_part(call: PatchPodStatus) -> PatchPodStatus | None:
    kept = tuple(c for c in call.conditions if c.type != POD_SCHEDULED)
    return PatchPodStatus(call.key, kept) if kept else None


def _changed(call: PatchPodStatus, base: Pod) -> list[Condition]:
    """The wished conditions that `base` does not show yet."""
    return [wished for wished in call.conditions if not _is_same(wished, base.condition(wished.type))]


def _is_same(wished: Condition, found: Condition | None) -> bool:
    if found is None:
        return False
    wish = (wished.status, wished.reason or "", wished.message or "")
    return wish == (found.status, found.reason or "", found.message or "")


def _moves_nomination(call: PatchPodStatus, base: Pod) -> bool:
    return call.nominated_node is not None and call.nominated_node != base.status.nominated_node_name


def _kept_time(wished: Condition, base: Pod, now: float | None) -> Condition:
    """The condition with the time of its last change of status."""
    found = base.condition(wished.type)
    if found is not None and found.status == wished.status and found.last_transition_time:
        return msgspec.structs.replace(wished, last_transition_time=found.last_transition_time)
    if wished.last_transition_time or now is None:
        return wished
    return msgspec.structs.replace(wished, last_transition_time=timestamp(now))


def _as_tree(condition: Condition) -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.to_builtins(condition)
    return {name: value for name, value in tree.items() if value is not None}
