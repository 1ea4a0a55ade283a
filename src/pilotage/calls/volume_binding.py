"""PATCH persistentvolumes: the claimRef by which a volume is kept for a claim, on the newest volume.

Laws: the patch carries the version it was computed on, so that it never takes a volume that somebody else
took meanwhile: on 409 the volume is looked at again, and the call fails when it names another claim. What
users put on the volume is kept. A claimRef that already says so is not written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from pilotage.api.meta import KubeObject
from pilotage.api.others import ClaimReference, PersistentVolume
from pilotage.api.wire import Request, Response
from pilotage.calls.answers import status_of
from pilotage.calls.base import BaseCallType
from pilotage.calls.paths import object_path
from pilotage.calls.types import Lane, Relevance, RetryPolicy, Sent
from pilotage.calls.verdicts import Fail, Rebase, Verdict
from pilotage.framework.calls import CallResult, Outcome
from pilotage.framework.volume_calls import BindVolume

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_decoder = msgspec.json.Decoder(PersistentVolume)


class VolumeBinding(BaseCallType[BindVolume]):
    name = "volume_binding"
    relevance: int = Relevance.BINDING
    retry = RetryPolicy(tries=8, first_delay=0.1, max_delay=5.0, max_age=60.0)

    def lane(self, call: BindVolume) -> Lane:
        return Lane.VOLUME

    def rebase(self, call: BindVolume, newest: KubeObject) -> BindVolume | Outcome:
        reference = _reference(newest)
        if reference is None or _names(reference, call):
            return call
        taken = f'it is kept for claim "{reference.namespace}/{reference.name}" by now'
        return Outcome(CallResult.FAILED, taken, 409, "Conflict")

    def is_no_op(self, call: BindVolume, base: KubeObject) -> bool:
        reference = _reference(base)
        return reference is not None and _names(reference, call) and bool(reference.uid)

    def reads_first(self, call: BindVolume) -> bool:
        return True

    def read(self, call: BindVolume) -> Request:
        return Request("GET", object_path(call.key))

    def requests(self, call: BindVolume, base: KubeObject | None, now: float) -> Sequence[Request]:
        assert base is not None, "a volume is taken on its newest version"
        claim = call.claim
        reference: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        }
        meta: dict[str, Any] = {"uid": call.key.uid, "resourceVersion": base.metadata.resource_version}
        if _reference(base) is None:  # a reservation that a user made stays after the claim is gone
            meta["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        body = msgspec.json.encode({"metadata": meta, "spec": {"claimRef": reference}})
        path = object_path(call.key)
        return (Request("PATCH", path, body=body, content_type="application/merge-patch+json"),)

    def decode(self, body: bytes) -> PersistentVolume | None:
        try:
            found = _decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return found if found.metadata.uid else None

    def on_conflict(self, sent: Sent[BindVolume], response: Response) -> Verdict:
        status = status_of(response)
        return Rebase(status.message, None, 409, status.reason)

    def on_read(self, sent: Sent[BindVolume], response: Response) -> Verdict:
        if response.status == 404:
            return Fail("the volume is gone", 404, "NotFound")
        return super().on_read(sent, response)


def _reference(view: KubeObject) -> ClaimReference | None:
    return view.spec.claim_ref if isinstance(view, PersistentVolume) else None


def _names(reference: ClaimReference, call: BindVolume) -> bool:
    claim = call.claim
    same_name = (reference.namespace, reference.name) == (claim.namespace, claim.name)
    return same_name and reference.uid in ("", claim.uid)
