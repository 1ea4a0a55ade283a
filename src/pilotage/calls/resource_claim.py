"""PATCH resourceclaims/status: allocation and reservedFor, on the newest claim.

Laws:
- What must still be as decided: a claim that somebody else allocated otherwise, or that lost the allocation
  it was reserved with, or that is being deleted, drops the decision; the pod is scheduled again (A10).
- Consumers that others noted stay; ours are put in and struck off one by one. Devices are given back only
  when nobody is left.
- The protection finalizer is on the claim before it is allocated. (Who cleans up takes it off.)
- Every write carries the version it was computed on. Wishes for one claim fold: the last word on a consumer
  and on the allocation counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from pilotage.api.claims import ClaimConsumer, ClaimStatus, ResourceClaim
from pilotage.api.meta import KubeObject
from pilotage.api.wire import Request, Response
from pilotage.calls.answers import is_success, status_of
from pilotage.calls.base import BaseCallType
from pilotage.calls.paths import object_path
from pilotage.calls.types import Lane, Relevance, RetryPolicy, Sent
from pilotage.calls.verdicts import Fail, Rebase, Verdict
from pilotage.framework.calls import CallResult, Outcome
from pilotage.framework.claim_calls import ChangeClaim

PROTECTION = "resource.kubernetes.io/delete-protection"
MOST_CONSUMERS = 256  # of a claim, by the API
_decoder = msgspec.json.Decoder(ResourceClaim)


class ResourceClaimChange(BaseCallType[ChangeClaim]):
    name = "resource_claim"
    relevance: int = Relevance.BINDING
    retry = RetryPolicy(tries=8, first_delay=0.1, max_delay=5.0, max_age=60.0)

    def lane(self, call: ChangeClaim) -> Lane:
        return Lane.VOLUME

    def merge(self, old: ChangeClaim, new: ChangeClaim) -> ChangeClaim:
        named = {one.uid for one in new.reserve}
        kept = tuple(one for one in old.reserve if one.uid not in named and one.uid not in new.release)
        allocation = old.allocation if new.allocation is None else new.allocation
        return ChangeClaim(new.key, kept + new.reserve, (old.release - named) | new.release, allocation)

    def rebase(self, call: ChangeClaim, newest: KubeObject) -> ChangeClaim | Outcome:
        if not isinstance(newest, ResourceClaim):
            return call
        why = _lost(call, newest)
        return Outcome(CallResult.FAILED, why, 409, "Conflict") if why else call

    def is_no_op(self, call: ChangeClaim, base: KubeObject) -> bool:
        return (
            isinstance(base, ResourceClaim) and _wished(call, base) == base.status and not _bare(call, base)
        )

    def apply(self, call: ChangeClaim, base: KubeObject) -> KubeObject:
        if not isinstance(base, ResourceClaim) or _wished(call, base) == base.status:
            return base
        return msgspec.structs.replace(base, status=_wished(call, base))

    def reads_first(self, call: ChangeClaim) -> bool:
        return True

    def read(self, call: ChangeClaim) -> Request:
        return Request("GET", object_path(call.key))

    def requests(self, call: ChangeClaim, base: KubeObject | None, now: float) -> Sequence[Request]:
        """One at a time: the answer to the finalizer's write is what the status is written on."""
        assert isinstance(base, ResourceClaim), "a claim is changed on its newest version"
        meta: dict[str, Any] = {"uid": call.key.uid, "resourceVersion": base.metadata.resource_version}
        if _bare(call, base):
            meta["finalizers"] = [*(base.metadata.finalizers or ()), PROTECTION]
            return (_patch(call, "", {"metadata": meta}),)
        status = _wished(call, base)
        tree = {
            "allocation": status.allocation,
            "reservedFor": [_as_tree(one) for one in status.reserved_for or ()] or None,
        }
        return (_patch(call, "status", {"metadata": meta, "status": tree}),)

    def decode(self, body: bytes) -> ResourceClaim | None:
        try:
            found = _decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return found if found.metadata.uid else None

    def on_sent(self, sent: Sent[ChangeClaim], response: Response) -> Verdict:
        if is_success(response) and isinstance(sent.base, ResourceClaim) and _bare(sent.call, sent.base):
            return Rebase("", self.decode(response.body))
        if response.status == 404:
            return Fail("the claim is gone", 404, "NotFound")
        return super().on_sent(sent, response)

    def on_conflict(self, sent: Sent[ChangeClaim], response: Response) -> Verdict:
        status = status_of(response)
        return Rebase(status.message, None, 409, status.reason)

    def on_read(self, sent: Sent[ChangeClaim], response: Response) -> Verdict:
        if response.status == 404:
            return Fail("the claim is gone", 404, "NotFound")
        return super().on_read(sent, response)


def _lost(call: ChangeClaim, newest: ResourceClaim) -> str:
    """Why the decision cannot be carried out on the claim as it is; "" when it can."""
    if not call.reserve:
        return ""
    if newest.metadata.deletion_timestamp:
        return "the claim is being deleted"
    held = newest.status.allocation
    if held is None and not call.allocation:
        return "the claim is not allocated any more"
    if held is not None and call.allocation and held != msgspec.json.decode(call.allocation):
        return "the claim was allocated otherwise meanwhile"
    if len(_consumers(call, newest)) > MOST_CONSUMERS:
        return f"the claim has {MOST_CONSUMERS} consumers already"
    return ""


def _consumers(call: ChangeClaim, base: ResourceClaim) -> list[ClaimConsumer]:
    added = {one.uid for one in call.reserve}
    kept = [one for one in base.status.reserved_for or () if one.uid not in call.release or one.uid in added]
    known = {one.uid for one in kept}
    new = [
        ClaimConsumer(resource="pods", name=one.name, uid=one.uid)
        for one in call.reserve
        if one.uid not in known
    ]
    return kept + new


def _wished(call: ChangeClaim, base: ResourceClaim) -> ClaimStatus:
    consumers = _consumers(call, base)
    allocation = base.status.allocation
    if call.allocation and allocation is None:
        allocation = msgspec.json.decode(call.allocation)
    elif call.allocation == b"" and not consumers:
        allocation = None
    return ClaimStatus(allocation=allocation, reserved_for=consumers or None)


def _bare(call: ChangeClaim, base: ResourceClaim) -> bool:
    """Whether the claim is about to be allocated without protection."""
    return bool(call.allocation) and PROTECTION not in (base.metadata.finalizers or ())


def _as_tree(consumer: ClaimConsumer) -> dict[str, str]:
    tree: dict[str, str] = msgspec.to_builtins(consumer)
    return {name: value for name, value in tree.items() if value}


def _patch(call: ChangeClaim, subresource: str, tree: dict[str, Any]) -> Request:
    path = object_path(call.key, subresource)
    return Request("PATCH", path, body=msgspec.json.encode(tree), content_type="application/merge-patch+json")
