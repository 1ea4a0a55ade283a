"""ResourceClaims: reservations and allocations on the newest claim, and what gives way (A1, A10)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from callkit import Rig, body_of, ok, status
from pilotage.api.claims import ResourceClaim
from pilotage.calls.resource_claim import MOST_CONSUMERS, PROTECTION
from pilotage.calls.types import Lane
from pilotage.framework.calls import CallResult, ObjectKey
from pilotage.framework.claim_calls import ChangeClaim

KEY = ObjectKey("resourceclaims.resource.k8s.io", "default", "gpu", "uid-gpu")
DEVICES = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "0"}]}}
OTHERS = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "1"}]}}
PATH = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/gpu"


def pod(name: str) -> ObjectKey:
    return ObjectKey("pods", "default", name, f"uid-{name}")


def claim(
    *users: str, version: int = 1, allocation: Any = None, protected: bool = True, **meta: Any
) -> ResourceClaim:
    tree = {
        "metadata": {
            "name": "gpu",
            "namespace": "default",
            "uid": "uid-gpu",
            "resourceVersion": str(version),
            "finalizers": [PROTECTION] if protected else ["example.com/mine"],
            **meta,
        },
        "status": {
            "allocation": allocation,
            "reservedFor": [{"resource": "pods", "name": one, "uid": f"uid-{one}"} for one in users],
        },
    }
    return msgspec.convert(tree, ResourceClaim)


def allocate(*users: str, devices: Any = DEVICES) -> ChangeClaim:
    return ChangeClaim(KEY, tuple(pod(one) for one in users), allocation=msgspec.json.encode(devices))


def reserve(*users: str) -> ChangeClaim:
    return ChangeClaim(KEY, tuple(pod(one) for one in users))


def release(*users: str, allocation: bytes | None = None) -> ChangeClaim:
    return ChangeClaim(KEY, release=frozenset(f"uid-{one}" for one in users), allocation=allocation)


def users_in(body: Any) -> list[str]:
    return [one["name"] for one in body["status"]["reservedFor"] or ()]


def test_a_claim_is_allocated_and_reserved_in_one_write() -> None:
    rig = Rig()
    ticket = rig.offer(allocate("a"), claim(version=7))
    dispatch = rig.one()
    assert dispatch.lane is Lane.VOLUME
    assert (dispatch.request.method, dispatch.request.path) == ("PATCH", f"{PATH}/status")
    body = body_of(dispatch)
    assert body["metadata"] == {"uid": "uid-gpu", "resourceVersion": "7"}
    assert body["status"]["allocation"] == DEVICES
    assert body["status"]["reservedFor"] == [{"resource": "pods", "name": "a", "uid": "uid-a"}]
    rig.answer(dispatch, ok(claim("a", version=8, allocation=DEVICES)))
    assert rig.result(ticket) is CallResult.DONE


def test_protection_comes_first_and_keeps_the_finalizers_of_others() -> None:
    rig = Rig()
    ticket = rig.offer(allocate("a"), claim(protected=False))
    first = rig.one()
    assert first.request.path == PATH
    assert body_of(first)["metadata"]["finalizers"] == ["example.com/mine", PROTECTION]
    rig.answer(first, ok(claim(version=2)))
    second = rig.one()
    assert second.request.path == f"{PATH}/status"
    assert body_of(second)["metadata"]["resourceVersion"] == "2", "on what the first write returned"
    rig.answer(second, ok(claim("a", version=3, allocation=DEVICES)))
    assert rig.result(ticket) is CallResult.DONE


def test_wishes_for_one_claim_fold_and_consumers_of_others_stay() -> None:
    rig = Rig()
    base = claim("theirs", "old", allocation=DEVICES)
    rig.offer(reserve("a"), base)
    rig.offer(reserve("b"), base)
    rig.offer(release("old", "a"), base)
    assert users_in(body_of(rig.one())) == ["theirs", "b"]
    assert rig.take() == []


def test_the_last_word_on_a_consumer_counts() -> None:
    rig = Rig()
    base = claim("a", allocation=DEVICES)
    rig.offer(release("a"), base)
    rig.offer(reserve("a"), base)
    assert rig.take() == [], "reserved, released and reserved again: as it was"
    assert rig.queue.is_idle


def test_what_is_there_already_is_not_sent() -> None:
    rig = Rig()
    ticket = rig.offer(reserve("a"), claim("a", allocation=DEVICES))
    assert rig.take() == []
    assert rig.result(ticket) is CallResult.SKIPPED


def test_devices_are_given_back_once_nobody_is_left() -> None:
    rig = Rig()
    rig.offer(release("a", allocation=b""), claim("a", "b", allocation=DEVICES))
    body = body_of(rig.one())
    assert users_in(body) == ["b"]
    assert body["status"]["allocation"] == DEVICES
    last = Rig()
    last.offer(release("a", allocation=b""), claim("a", allocation=DEVICES))
    assert body_of(last.one())["status"] == {"allocation": None, "reservedFor": None}


@pytest.mark.parametrize(
    ("call", "before", "after", "text"),
    [
        (allocate("a"), claim(), claim(version=2, allocation=OTHERS), "allocated otherwise meanwhile"),
        (reserve("a"), claim(allocation=DEVICES), claim(version=2), "not allocated any more"),
        (
            reserve("a"),
            claim(allocation=DEVICES),
            claim(version=2, allocation=DEVICES, deletionTimestamp="2026-01-01T00:00:00Z"),
            "being deleted",
        ),
        (
            reserve("a"),
            claim(allocation=DEVICES),
            claim(*(f"p{n}" for n in range(MOST_CONSUMERS)), version=2, allocation=DEVICES),
            "256 consumers already",
        ),
    ],
)
def test_somebody_else_was_faster(
    call: ChangeClaim, before: ResourceClaim, after: ResourceClaim, text: str
) -> None:
    rig = Rig()
    ticket = rig.offer(call, before)
    rig.answer(rig.one(), status(409, "Conflict"))
    rig.answer(rig.one(), ok(after))
    assert rig.take() == []
    assert rig.outcomes[ticket].result is CallResult.FAILED
    assert text in rig.outcomes[ticket].error


def test_a_conflict_over_something_else_is_rebased() -> None:
    rig = Rig()
    ticket = rig.offer(reserve("a"), claim(allocation=DEVICES))
    rig.answer(rig.one(), status(409, "Conflict"))
    rig.answer(rig.one(), ok(claim("theirs", version=5, allocation=DEVICES)))
    again = rig.one()
    assert users_in(body_of(again)) == ["theirs", "a"]
    rig.answer(again, ok(claim("theirs", "a", version=6, allocation=DEVICES)))
    assert rig.result(ticket) is CallResult.DONE


def test_a_claim_that_is_gone_fails_the_call() -> None:
    rig = Rig()
    ticket = rig.offer(reserve("a"), claim(allocation=DEVICES))
    rig.answer(rig.one(), status(404, "NotFound"))
    assert rig.outcomes[ticket].result is CallResult.FAILED
    assert rig.outcomes[ticket].error == "the claim is gone"


def test_a_reservation_is_seen_before_it_is_written() -> None:
    rig = Rig()
    rig.offer(allocate("a"), claim())
    synced = rig.queue.sync("resourceclaims.resource.k8s.io", claim("theirs", version=2), rig.now).object
    assert isinstance(synced, ResourceClaim)
    assert synced.status.allocation == DEVICES
    assert [one.name for one in synced.status.reserved_for or ()] == ["theirs", "a"]
