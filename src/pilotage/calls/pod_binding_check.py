"""GET of a pod that an extender was asked to bind: its word, good or bad, is not taken for the fact.

An extender that failed or did not answer may have bound the pod all the same, and one that reports success
may have done nothing: a wrong belief in either direction is room that is given away twice or lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pilotage.api.meta import KubeObject
from pilotage.api.pods import Pod
from pilotage.api.wire import Request, Response
from pilotage.calls.base import BaseCallType
from pilotage.calls.paths import object_path
from pilotage.calls.types import Lane, Relevance, Sent
from pilotage.calls.verdicts import Done, Fail, Retry, Verdict
from pilotage.framework.binding_calls import ConfirmBinding
from pilotage.framework.calls import CallResult, Outcome

_NOT_BOUND = "the extender reported success, but the pod is not bound"


class PodBindingCheck(BaseCallType[ConfirmBinding]):
    name = "pod_binding_check"
    relevance: int = Relevance.BINDING

    def lane(self, call: ConfirmBinding) -> Lane:
        return Lane.BIND

    def rebase(self, call: ConfirmBinding, newest: KubeObject) -> ConfirmBinding | Outcome:
        node = newest.spec.node_name if isinstance(newest, Pod) else ""
        if not node:
            return call
        if node == call.node:
            return Outcome(CallResult.DONE)
        return Outcome(CallResult.FAILED, _elsewhere(node), 409, "Conflict")

    def requests(self, call: ConfirmBinding, base: KubeObject | None, now: float) -> Sequence[Request]:
        return (Request("GET", object_path(call.key)),)

    def decode(self, body: bytes) -> Pod | None:
        try:
            return msgspec.json.decode(body, type=Pod)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def on_sent(self, sent: Sent[ConfirmBinding], response: Response) -> Verdict:
        if response.status == 404:
            return Fail("the pod is gone", 404, "NotFound")
        if not 200 <= response.status < 300:
            return self.on_error(sent, response)
        pod = self.decode(response.body)
        return _seen(sent.call, pod) if pod is not None else Retry("the pod cannot be read")


def _seen(call: ConfirmBinding, pod: Pod) -> Verdict:
    node = pod.spec.node_name
    if pod.metadata.uid != call.key.uid:
        return Fail("the pod was replaced by another of its name", 404, "NotFound")
    if node == call.node:
        return Done(pod)
    if node:
        return Fail(_elsewhere(node), 409, "Conflict")
    return Fail(call.failure) if call.failure else Retry(_NOT_BOUND)


def _elsewhere(node: str) -> str:
    return f'pod is already assigned to node "{node}"'
