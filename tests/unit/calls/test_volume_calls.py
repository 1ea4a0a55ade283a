"""The two calls on storage: what they send, when they give way and when they are needless."""

from __future__ import annotations

from typing import Any

import pytest

from callkit import LOST, Rig, body_of, ok, status
from pilotage.api.meta import KubeObject
from pilotage.calls.types import Lane
from pilotage.framework.calls import CallResult, ObjectKey
from pilotage.framework.volume_calls import BindVolume, SelectNode
from volumekit import pv, pvc, ref, view_of

CLAIM = ObjectKey("persistentvolumeclaims", "default", "c", "uid-c")
VOLUME = ObjectKey("persistentvolumes", "", "v", "uid-v")
SELECTED = "volume.kubernetes.io/selected-node"
BIND = BindVolume(VOLUME, CLAIM)
SELECT = SelectNode(CLAIM, "n1")


def volume(**spec: Any) -> KubeObject:
    return view_of(pv("v", **spec))


def claim(node: str = "", **more: Any) -> KubeObject:
    return view_of(pvc("c", annotations={SELECTED: node} if node else {}, **more))


def test_a_volume_is_reserved_on_its_newest_version() -> None:
    rig, base = Rig(), volume()
    ticket = rig.offer(BIND, base)
    dispatch = rig.one()
    assert dispatch.lane is Lane.VOLUME
    assert (dispatch.request.method, dispatch.request.path) == ("PATCH", "/api/v1/persistentvolumes/v")
    body = body_of(dispatch)
    assert body["metadata"] == {
        "uid": "uid-v",
        "resourceVersion": base.metadata.resource_version,
        "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
    }
    assert {key: body["spec"]["claimRef"][key] for key in ("kind", "namespace", "name", "uid")} == {
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "c",
        "uid": "uid-c",
    }
    written = volume(claimRef=ref("c"))
    rig.answer(dispatch, ok(written))
    assert rig.result(ticket) is CallResult.DONE
    assert rig.ended[-1].object == written, "the answer goes into the cache at once"


def test_a_users_reservation_is_completed_and_stays_the_users() -> None:
    rig = Rig()
    rig.offer(BIND, volume(claimRef={"namespace": "default", "name": "c"}))
    assert "annotations" not in body_of(rig.one())["metadata"]


@pytest.mark.parametrize(
    ("call", "base"), [(BIND, volume(claimRef=ref("c"))), (SELECT, claim("n1")), (SELECT, claim(to="v"))]
)
def test_what_is_there_already_is_not_sent(call: Any, base: KubeObject) -> None:
    rig = Rig()
    ticket = rig.offer(call, base)
    assert rig.take() == []
    assert rig.result(ticket) is CallResult.SKIPPED


def test_the_newest_version_is_read_where_none_is_known() -> None:
    rig = Rig()
    ticket = rig.offer(SELECT)
    read = rig.one()
    path = "/api/v1/namespaces/default/persistentvolumeclaims/c"
    assert (read.request.method, read.request.path) == ("GET", path)
    rig.answer(read, ok(claim()))
    write = rig.one()
    assert body_of(write)["metadata"]["annotations"] == {SELECTED: "n1"}
    rig.answer(write, ok(claim("n1")))
    assert rig.result(ticket) is CallResult.DONE


@pytest.mark.parametrize(
    ("call", "before", "after", "text"),
    [
        (BIND, volume(), volume(claimRef=ref("other")), 'kept for claim "default/other"'),
        (BIND, volume(), volume(claimRef=ref("c", uid="older")), 'kept for claim "default/c"'),
        (SELECT, claim(), claim("n2"), 'sent to node "n2" meanwhile'),
    ],
)
def test_somebody_else_was_faster(call: Any, before: KubeObject, after: KubeObject, text: str) -> None:
    rig = Rig()
    ticket = rig.offer(call, before)
    rig.answer(rig.one(), status(409, "Conflict"))
    rig.answer(rig.one(), ok(after))
    assert rig.take() == []
    outcome = rig.outcomes[ticket]
    assert outcome.result is CallResult.FAILED
    assert text in outcome.error


@pytest.mark.parametrize(
    ("call", "before", "after"),
    [
        (BIND, volume(), volume(labels={"a": "b"})),
        (SELECT, claim(), claim()),
        (SelectNode(CLAIM, "n1", "n9"), claim("n9"), claim("n9")),
    ],
)
def test_an_unrelated_change_is_kept(call: Any, before: KubeObject, after: KubeObject) -> None:
    rig = Rig()
    ticket = rig.offer(call, before)
    rig.answer(rig.one(), status(409, "Conflict"))
    rig.answer(rig.one(), ok(after))
    again = rig.one()
    assert body_of(again)["metadata"]["resourceVersion"] == after.metadata.resource_version
    rig.answer(again, ok(after))
    assert rig.result(ticket) is CallResult.DONE


def test_a_claim_that_was_bound_meanwhile_needs_no_node() -> None:
    rig = Rig()
    ticket = rig.offer(SELECT, claim())
    rig.answer(rig.one(), status(409, "Conflict"))
    rig.answer(rig.one(), ok(claim(to="v")))
    assert rig.result(ticket) is CallResult.SKIPPED


@pytest.mark.parametrize(("call", "base"), [(BIND, volume()), (SELECT, claim())])
def test_failures(call: Any, base: KubeObject) -> None:
    rig = Rig()
    ticket = rig.offer(call, base)
    rig.answer(rig.one(), LOST)
    rig.pass_time(1)
    rig.answer(rig.one(), status(503, "ServiceUnavailable"))
    rig.pass_time(1)
    rig.answer(rig.one(), status(403, "Forbidden", "no"))
    assert (rig.result(ticket), rig.outcomes[ticket].error) == (CallResult.FAILED, "no")


@pytest.mark.parametrize("call", [BIND, SELECT])
def test_an_object_that_is_gone_fails_the_call(call: Any) -> None:
    rig = Rig()
    ticket = rig.offer(call)
    rig.answer(rig.one(), status(404, "NotFound"))
    assert rig.result(ticket) is CallResult.FAILED
    assert "is gone" in rig.outcomes[ticket].error


def test_an_answer_that_cannot_be_read_is_no_object() -> None:
    for call, base in ((BIND, volume()), (SELECT, claim())):
        rig = Rig()
        ticket = rig.offer(call, base)
        dispatch = rig.one()
        rig.answer(dispatch, type(ok())(200, b"{"))
        assert rig.result(ticket) is CallResult.DONE
        assert rig.ended[-1].object is None


def test_two_pods_that_want_the_same_write_share_it() -> None:
    rig = Rig()
    first, second = rig.offer(SELECT, claim()), rig.offer(SELECT, claim())
    rig.answer(rig.one(), ok(claim("n1")))
    assert rig.take() == []
    assert rig.result(first) is CallResult.OVERWRITTEN
    assert rig.result(second) is CallResult.DONE
