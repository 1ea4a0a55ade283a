"""An eviction is one call with two ordered requests; it is the last word about its pod. B4: 404 ends it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from callkit import LOST, REFUSED, Rig, bind, body_of, ok, patch, pod, pod_key, status, unschedulable
from pilotage.api.meta import ObjectMeta
from pilotage.api.pods import Pod, PodStatus
from pilotage.api.wire import Response
from pilotage.calls.reports import Dispatch
from pilotage.calls.types import Lane, Phase
from pilotage.framework.calls import CallResult, EvictPod, PatchPodStatus

MESSAGE = "default-scheduler: preempting to accommodate a higher priority pod"


@pytest.fixture
def rig() -> Rig:
    return Rig()


def evict(name: str = "p") -> EvictPod:
    return EvictPod(pod_key(name), MESSAGE)


def leaving(version: int = 9, uid: str = "uid-p") -> Pod:
    meta = ObjectMeta(name="p", namespace="ns", uid=uid, resource_version=str(version))
    return Pod(metadata=msgspec.structs.replace(meta, deletion_timestamp="2026-01-01T00:00:00Z"))


def at_delete(rig: Rig) -> Dispatch:
    """The DELETE of an eviction whose condition was written."""
    rig.answer(rig.one(), ok(pod(version=2)))
    return rig.one()


def test_condition_first_then_delete_both_for_this_very_pod(rig: Rig) -> None:
    ticket = rig.offer(evict())
    first = rig.one()
    assert (first.request.method, first.request.path) == ("PATCH", "/api/v1/namespaces/ns/pods/p/status")
    assert first.lane is Lane.BIND
    body = body_of(first)
    assert body["metadata"] == {"uid": "uid-p"}
    (condition,) = body["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("DisruptionTarget", "True")
    assert (condition["reason"], condition["message"]) == ("PreemptionByScheduler", MESSAGE)
    assert not rig.take()
    rig.answer(first, ok(pod(version=2)))
    second = rig.one()
    assert (second.request.method, second.request.path) == ("DELETE", "/api/v1/namespaces/ns/pods/p")
    assert body_of(second)["preconditions"] == {"uid": "uid-p"}
    assert ticket not in rig.outcomes
    rig.answer(second, ok(leaving()))
    assert rig.outcomes[ticket].result is CallResult.DONE
    assert rig.ended[-1].object is not None
    assert rig.queue.is_idle


@pytest.mark.parametrize("code", [404, 409])
@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("found", [status(404), ok(pod(uid="another"))])
def test_a_pod_that_is_gone_ends_it_as_done(rig: Rig, code: int, step: int, found: Response) -> None:
    ticket = rig.offer(evict())
    dispatch = at_delete(rig) if step else rig.one()
    rig.answer(dispatch, status(code))
    rig.answer(rig.one(), found)
    assert rig.outcomes[ticket].result is CallResult.DONE
    assert rig.queue.is_idle


@pytest.mark.parametrize("code", [404, 409])
@pytest.mark.parametrize("step", [0, 1])
def test_a_pod_that_is_told_gone_but_is_there_is_evicted_all_the_same(rig: Rig, code: int, step: int) -> None:
    ticket = rig.offer(evict())
    rig.answer(at_delete(rig) if step else rig.one(), status(code))
    rig.answer(rig.one(), ok(pod()))
    assert ticket not in rig.outcomes
    rig.pass_time(5)
    rig.answer(at_delete(rig), ok(leaving()))
    assert rig.outcomes[ticket].result is CallResult.DONE


@pytest.mark.parametrize("step", [0, 1])
def test_a_refusal_fails_it(rig: Rig, step: int) -> None:
    ticket = rig.offer(evict())
    rig.answer(at_delete(rig) if step else rig.one(), status(403, "Forbidden", "no delete for you"))
    assert rig.outcomes[ticket].result is CallResult.FAILED
    assert rig.outcomes[ticket].error == "no delete for you"


@pytest.mark.parametrize("result", [status(503), status(429, retry_after="1"), REFUSED])
def test_what_may_pass_is_tried_again_from_its_own_step(rig: Rig, result: object) -> None:
    ticket = rig.offer(evict())
    rig.answer(at_delete(rig), result)  # type: ignore[arg-type]  # parametrised over both kinds of answers
    rig.pass_time(5)
    again = rig.one()
    assert again.request.method == "DELETE"
    rig.answer(again, ok(leaving()))
    assert rig.outcomes[ticket].result is CallResult.DONE


@pytest.mark.parametrize(
    ("found", "is_over"),
    [
        (ok(leaving()), True),
        (status(404), True),
        (ok(pod(uid="another")), True),
        (ok(pod()), False),
    ],
)
def test_an_unanswered_delete_is_verified_before_it_is_repeated(
    rig: Rig, found: object, is_over: bool
) -> None:
    ticket = rig.offer(evict())
    rig.answer(at_delete(rig), LOST)
    read = rig.one()
    assert (read.request.method, read.phase) == ("GET", Phase.VERIFY)
    rig.answer(read, found)  # type: ignore[arg-type]  # parametrised over answers
    assert (ticket in rig.outcomes) == is_over
    if not is_over:
        rig.pass_time(5)
        rig.answer(at_delete(rig), ok(leaving()))
    assert rig.outcomes[ticket].result is CallResult.DONE


@pytest.mark.parametrize("newest", [leaving(), pod(version=9)])
def test_a_pod_that_leaves_or_ended_meanwhile_needs_no_request(rig: Rig, newest: Pod) -> None:
    ended = newest
    if newest.metadata.deletion_timestamp is None:
        ended = msgspec.structs.replace(newest, status=PodStatus(phase="Succeeded"))
    ticket = rig.offer(evict())
    rig.sync(ended)
    assert rig.outcomes[ticket].result is CallResult.SKIPPED
    assert not rig.take()


def test_a_pod_that_leaves_between_the_requests_is_not_deleted_again(rig: Rig) -> None:
    ticket = rig.offer(evict())
    rig.answer(rig.one(), ok(pod(version=2)))
    rig.sync(leaving())
    assert rig.outcomes[ticket].result is CallResult.SKIPPED
    assert rig.queue.is_idle


def test_it_supersedes_what_waits_and_nothing_supersedes_it(rig: Rig) -> None:
    lesser = [rig.offer(patch()), rig.offer(bind())]
    ticket = rig.offer(evict())
    assert [rig.outcomes[one].result for one in lesser] == [CallResult.OVERWRITTEN] * 2
    later = rig.offer(patch("newer"))
    assert rig.outcomes[later].result is CallResult.SKIPPED
    rig.answer(at_delete(rig), ok(leaving()))
    assert rig.outcomes[ticket].result is CallResult.DONE
    assert rig.queue.is_idle


def test_it_waits_for_a_bind_that_is_on_its_way(rig: Rig) -> None:
    rig.offer(bind())
    flying = rig.one()
    ticket = rig.offer(evict())
    assert not rig.take()
    rig.answer(flying, ok(code=201))
    rig.answer(at_delete(rig), ok(leaving()))
    assert rig.outcomes[ticket].result is CallResult.DONE


def test_a_nomination_travels_in_the_lane_of_the_eviction_that_follows_it(rig: Rig) -> None:
    """A18: also where the patch waited in a lower lane before."""
    rig.offer(patch("old", name="preemptor"))
    rig.offer(
        type(patch())(pod_key("preemptor"), patch().conditions, "n1", precedes_eviction=True),
        pod("preemptor"),
    )
    rig.offer(evict("victim"))
    first, second = rig.take(2)
    assert [d.key.name for d in (first, second)] == ["preemptor", "victim"]
    assert first.lane is second.lane is Lane.BIND


def nomination(name: str = "preemptor") -> PatchPodStatus:
    return replace(patch(name=name, node="n1"), precedes_eviction=True)


def evict_for(name: str = "preemptor") -> EvictPod:
    return EvictPod(pod_key("victim"), "preempted", pod_key(name))


def test_a18_an_eviction_waits_for_the_nomination_behind_an_older_patch(rig: Rig) -> None:
    rig.offer(patch("no room", "preemptor"), pod("preemptor"))
    older = rig.one()
    rig.offer(nomination(), pod("preemptor"))
    rig.offer(evict_for(), pod("victim"))
    assert rig.take() == [], "the nomination cannot go yet, so the eviction does not"
    rig.answer(older, ok(pod("preemptor", 2, conditions=[unschedulable()])))
    first, second = rig.take()
    assert [first.key.name, second.key.name] == ["preemptor", "victim"]


@pytest.mark.parametrize("end", ["cancel", "refused"])
def test_a18_a_nomination_that_will_not_be_lets_the_eviction_go(rig: Rig, end: str) -> None:
    rig.offer(patch("no room", "preemptor"), pod("preemptor"))
    older = rig.one()
    rig.offer(nomination(), pod("preemptor"))
    rig.offer(evict_for(), pod("victim"))
    assert rig.take() == []
    if end == "cancel":
        rig.cancel("uid-preemptor")
    else:
        rig.answer(older, status(404, "NotFound"))
        rig.sync(pod("preemptor", 9, node="n1"))  # bound by somebody: nothing is nominated any more
    assert "victim" in [dispatch.key.name for dispatch in rig.take()]


def test_a18_an_eviction_that_is_held_may_be_cancelled(rig: Rig) -> None:
    rig.offer(patch("no room", "preemptor"), pod("preemptor"))
    older = rig.one()
    rig.offer(nomination(), pod("preemptor"))
    ticket = rig.offer(evict_for(), pod("victim"))
    assert rig.take() == []
    rig.cancel("uid-victim")
    assert rig.result(ticket) is CallResult.CANCELLED
    rig.answer(older, ok(pod("preemptor", 2)))
    assert [dispatch.key.name for dispatch in rig.take()] == ["preemptor"]


def test_a18_without_a_nomination_nothing_is_held(rig: Rig) -> None:
    rig.offer(evict_for(), pod("victim"))
    assert rig.one().key.name == "victim"
