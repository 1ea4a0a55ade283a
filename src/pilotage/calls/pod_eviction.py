"""Removes a preemption victim: PATCH of its DisruptionTarget condition, then DELETE, in this order.

Laws:
- Both requests name the UID: a pod that was replaced by one of its name is never touched.
- NotFound at either ends the call as done; a victim that is already leaving needs no request at all.
- At most one DELETE takes effect. One that went unanswered is verified by reading before it is repeated;
  so is the answer that the pod is gone: a pod that is told gone but stays would keep its preemptor waiting.
- It is not sent before its preemptor's nomination was taken (A18).
- It supersedes every other write to the pod (requirement A3).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pilotage.api.meta import KubeObject
from pilotage.api.pods import Pod
from pilotage.api.wire import Request, Response
from pilotage.calls.answers import is_success, retry, status_of
from pilotage.calls.base import BaseCallType
from pilotage.calls.paths import object_path
from pilotage.calls.pod_status_patch import timestamp
from pilotage.calls.types import Lane, NoAnswer, Phase, Relevance, Result, RetryPolicy, Sent
from pilotage.calls.verdicts import Done, Next, Resend, Verdict, Verify
from pilotage.framework.calls import CallResult, EvictPod, ObjectKey, Outcome

_CONDITION, _DELETE = 0, 1
_ENDED = ("Succeeded", "Failed")
_GONE = (404, 409)  # 409: the UID names an earlier pod of this name
_decoder = msgspec.json.Decoder(Pod)


class PodEviction(BaseCallType[EvictPod]):
    name = "pod_eviction"
    relevance: int = Relevance.EVICTION
    retry = RetryPolicy(tries=8, first_delay=0.1, max_delay=5.0, max_age=60.0)

    def lane(self, call: EvictPod) -> Lane:
        return Lane.BIND

    def waits_for(self, call: EvictPod) -> ObjectKey | None:
        return call.preemptor

    def merge(self, old: EvictPod, new: EvictPod) -> EvictPod:
        return old

    def after(self, call: EvictPod, sent: EvictPod) -> EvictPod | Outcome:
        return Outcome(CallResult.DONE)

    def rebase(self, call: EvictPod, newest: KubeObject) -> EvictPod | Outcome:
        if isinstance(newest, Pod) and _is_leaving(newest):
            return Outcome(CallResult.SKIPPED, "the pod is leaving already")
        return call

    def read(self, call: EvictPod) -> Request:
        return Request("GET", object_path(call.key))

    def requests(self, call: EvictPod, base: KubeObject | None, now: float) -> Sequence[Request]:
        key = call.key
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": call.message,
            "lastTransitionTime": timestamp(now),
        }
        patch = {"metadata": {"uid": key.uid}, "status": {"conditions": [condition]}}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": key.uid}}
        return (
            Request(
                "PATCH",
                object_path(key, "status"),
                body=msgspec.json.encode(patch),
                content_type="application/strategic-merge-patch+json",
            ),
            Request("DELETE", object_path(key), body=msgspec.json.encode(options)),
        )

    def decode(self, body: bytes) -> Pod | None:
        try:
            pod = _decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return pod if pod.metadata.uid and pod.metadata.deletion_timestamp else None

    def on_result(self, sent: Sent[EvictPod], result: Result) -> Verdict:
        if sent.phase is Phase.VERIFY:
            return self._verified(sent, result)
        if isinstance(result, NoAnswer):
            is_unsure = result.sent and sent.step == _DELETE
            return Verify(result.error) if is_unsure else retry(result)
        return self.on_sent(sent, result)

    def on_sent(self, sent: Sent[EvictPod], response: Response) -> Verdict:
        if response.status in _GONE:
            return Verify(status_of(response).message)
        if not is_success(response):
            return self.on_error(sent, response)
        return Next() if sent.step == _CONDITION else Done(self.decode(response.body))

    def _verified(self, sent: Sent[EvictPod], result: Result) -> Verdict:
        """What reading the pod says after an answer that left its fate open."""
        if isinstance(result, NoAnswer) or not (is_success(result) or result.status == 404):
            return retry(result)
        if result.status == 404:
            return Done()
        try:
            pod = _decoder.decode(result.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return retry(result)
        if pod.metadata.uid != sent.call.key.uid or _is_leaving(pod):
            return Done()
        return Resend(sent.call, "the pod is still there and not leaving")


def _is_leaving(pod: Pod) -> bool:
    return bool(pod.metadata.deletion_timestamp) or pod.status.phase in _ENDED
