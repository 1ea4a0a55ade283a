"""POST pods/binding: the one write whose target must still be as decided, so it is never rebased.

An answered error ends the attempt (the scheduler backs off and decides anew); only 429 is tried again.
A bind that went unanswered may have taken effect: the pod is read before anything else is decided, and
the bind is repeated only when the pod is still unbound (field case A5).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pilotage.api.meta import KubeObject
from pilotage.api.pods import Pod
from pilotage.api.wire import Request, Response
from pilotage.calls.answers import failed, is_success, retry
from pilotage.calls.base import BaseCallType
from pilotage.calls.paths import object_path
from pilotage.calls.types import Lane, NoAnswer, Phase, Relevance, Result, RetryPolicy, Sent
from pilotage.calls.verdicts import Done, Fail, Resend, Verdict, Verify
from pilotage.framework.calls import BindPod, CallResult, Outcome

decode_pod = msgspec.json.Decoder(Pod).decode


class PodBinding(BaseCallType[BindPod]):
    name = "pod_binding"
    relevance: int = Relevance.BINDING
    retry = RetryPolicy(tries=8, first_delay=0.1, max_delay=5.0, max_age=60.0)

    def lane(self, call: BindPod) -> Lane:
        return Lane.BIND

    def after(self, call: BindPod, sent: BindPod) -> BindPod | Outcome:
        return _bound_already(call, sent.node)

    def rebase(self, call: BindPod, newest: KubeObject) -> BindPod | Outcome:
        node = newest.spec.node_name if isinstance(newest, Pod) else ""
        return _bound_already(call, node) if node else call

    def read(self, call: BindPod) -> Request:
        return Request("GET", object_path(call.key))

    def requests(self, call: BindPod, base: KubeObject | None, now: float) -> Sequence[Request]:
        key = call.key
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": key.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": call.node},
        }
        return (Request("POST", object_path(key, "binding"), body=msgspec.json.encode(body)),)

    def on_result(self, sent: Sent[BindPod], result: Result) -> Verdict:
        if sent.phase is Phase.VERIFY:
            return _verified(sent.call, result)
        if isinstance(result, NoAnswer):
            return Verify(result.error) if result.sent else retry(result)
        if is_success(result):
            return Done()
        if result.status == 429:
            return retry(result)
        if result.status == 409 and sent.unsure:
            return Verify("conflict after a bind that went unanswered")
        return failed(result)


def _bound_already(call: BindPod, node: str) -> Outcome:
    if node == call.node:
        return Outcome(CallResult.DONE)
    return Outcome(CallResult.FAILED, f'pod is already assigned to node "{node}"', 409, "Conflict")


def _verified(call: BindPod, result: Result) -> Verdict:
    """What reading the pod says about a bind that went unanswered."""
    if isinstance(result, NoAnswer) or not (is_success(result) or result.status == 404):
        return retry(result)
    pod = _pod_in(result) if is_success(result) else None
    if result.status != 404 and pod is None:
        return retry(result)
    if pod is None or pod.metadata.uid != call.key.uid:
        return Fail("the pod is gone", 404, "NotFound")
    if not pod.spec.node_name:
        return Resend(call, "bind went unanswered and had no effect")
    outcome = _bound_already(call, pod.spec.node_name)
    return Done(pod) if outcome.is_ok else Fail(outcome.error, outcome.status, outcome.reason)


def _pod_in(response: Response) -> Pod | None:
    try:
        return decode_pod(response.body)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
