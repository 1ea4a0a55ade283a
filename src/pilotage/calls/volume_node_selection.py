"""PATCH persistentvolumeclaims: the annotation that tells the provisioner for which node to make a volume.

Laws: computed on the newest claim and sent with its version. A claim that meanwhile is bound needs nothing
more; one that meanwhile was sent to a third node is somebody else's, and the call fails.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pilotage.api.meta import KubeObject
from pilotage.api.others import PersistentVolumeClaim
from pilotage.api.wire import Request, Response
from pilotage.calls.answers import status_of
from pilotage.calls.base import BaseCallType
from pilotage.calls.paths import object_path
from pilotage.calls.types import Lane, Relevance, RetryPolicy, Sent
from pilotage.calls.verdicts import Fail, Rebase, Verdict
from pilotage.framework.calls import CallResult, Outcome
from pilotage.framework.volume_calls import SelectNode

SELECTED_NODE = "volume.kubernetes.io/selected-node"
_decoder = msgspec.json.Decoder(PersistentVolumeClaim)


class ClaimNodeSelection(BaseCallType[SelectNode]):
    name = "claim_node_selection"
    relevance: int = Relevance.BINDING
    retry = RetryPolicy(tries=8, first_delay=0.1, max_delay=5.0, max_age=60.0)

    def lane(self, call: SelectNode) -> Lane:
        return Lane.VOLUME

    def rebase(self, call: SelectNode, newest: KubeObject) -> SelectNode | Outcome:
        if isinstance(newest, PersistentVolumeClaim) and newest.spec.volume_name:
            return Outcome(CallResult.SKIPPED, "the claim has a volume")
        known = _selected(newest)
        if known in ("", call.node, call.replaces):
            return call
        return Outcome(CallResult.FAILED, f'it was sent to node "{known}" meanwhile', 409, "Conflict")

    def is_no_op(self, call: SelectNode, base: KubeObject) -> bool:
        return _selected(base) == call.node

    def reads_first(self, call: SelectNode) -> bool:
        return True

    def read(self, call: SelectNode) -> Request:
        return Request("GET", object_path(call.key))

    def requests(self, call: SelectNode, base: KubeObject | None, now: float) -> Sequence[Request]:
        assert base is not None, "a claim is annotated on its newest version"
        meta = {
            "uid": call.key.uid,
            "resourceVersion": base.metadata.resource_version,
            "annotations": {SELECTED_NODE: call.node},
        }
        body = msgspec.json.encode({"metadata": meta})
        path = object_path(call.key)
        return (Request("PATCH", path, body=body, content_type="application/merge-patch+json"),)

    def decode(self, body: bytes) -> PersistentVolumeClaim | None:
        try:
            found = _decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return found if found.metadata.uid else None

    def on_conflict(self, sent: Sent[SelectNode], response: Response) -> Verdict:
        status = status_of(response)
        return Rebase(status.message, None, 409, status.reason)

    def on_read(self, sent: Sent[SelectNode], response: Response) -> Verdict:
        if response.status == 404:
            return Fail("the claim is gone", 404, "NotFound")
        return super().on_read(sent, response)


def _selected(view: KubeObject) -> str:
    return (view.metadata.annotations or {}).get(SELECTED_NODE, "")
