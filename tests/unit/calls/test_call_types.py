"""Call types: the registry's refusals, types of one's own, several requests, types that raise (A2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from callkit import LOST, Rig, bind, ok, patch, pod, status
from pilotage.api.meta import KubeObject
from pilotage.api.wire import Request, Response
from pilotage.calls.answers import is_success
from pilotage.calls.base import BaseCallType
from pilotage.calls.defaults import default_call_types
from pilotage.calls.paths import object_path
from pilotage.calls.pod_binding import PodBinding
from pilotage.calls.queue import CallQueue
from pilotage.calls.registry import CallTypeError, CallTypes
from pilotage.calls.types import Lane, Relevance, Sent
from pilotage.calls.verdicts import Done, Next, Verdict
from pilotage.framework.calls import BindPod, Call, CallResult, ObjectKey


@dataclass(frozen=True, slots=True)
class Paint(Call):
    """A custom resource gets a colour."""

    colour: str

    @property
    def call_type(self) -> str:
        return "paint"


class Painting(BaseCallType[Paint]):
    name = "paint"

    def requests(self, call: Paint, base: KubeObject | None, now: float) -> Sequence[Request]:
        return (Request("PUT", object_path(call.key), body=call.colour.encode()),)


@dataclass(frozen=True, slots=True)
class Evict(Call):
    @property
    def call_type(self) -> str:
        return "evict"


class Eviction(BaseCallType[Evict]):
    """Two ordered requests; NotFound at either ends it as done; supersedes everything."""

    name = "evict"
    relevance: int = Relevance.EVICTION

    def lane(self, call: Evict) -> Lane:
        return Lane.BIND

    def requests(self, call: Evict, base: KubeObject | None, now: float) -> Sequence[Request]:
        path = object_path(call.key)
        return (Request("PATCH", f"{path}/status"), Request("DELETE", path))

    def on_sent(self, sent: Sent[Evict], response: Response) -> Verdict:
        if response.status == 404:
            return Done()
        if is_success(response):
            return Next() if sent.step == 0 else Done()
        return super().on_sent(sent, response)


WIDGET = ObjectKey("widgets.example.com", "ns", "w", "u1")


def rig_with(*types: Any) -> Rig:
    known = default_call_types("host")
    for one in types:
        known.register(one)
    return Rig(CallQueue(known))


def test_custom_resource_newest_wins() -> None:
    rig = rig_with(Painting())
    first = rig.offer(Paint(WIDGET, "red"))
    rig.offer(Paint(WIDGET, "blue"))
    dispatch = rig.one()
    assert dispatch.request.path == "/apis/example.com/v1/namespaces/ns/widgets/w"
    assert dispatch.request.body == b"blue"
    assert rig.result(first) is CallResult.OVERWRITTEN
    rig.answer(dispatch, ok())
    assert rig.queue.is_idle


def test_two_requests_in_order_and_nothing_in_between() -> None:
    rig = rig_with(Eviction())
    ticket = rig.offer(Evict(bind().key))
    first = rig.one()
    assert first.request.method == "PATCH"
    late = rig.offer(bind())
    assert rig.result(late) is CallResult.SKIPPED
    rig.answer(first, ok())
    second = rig.one()
    assert second.request.method == "DELETE"
    rig.answer(second, status(503))
    rig.pass_time(1)
    again = rig.one()
    assert again.request.method == "DELETE"
    rig.answer(again, LOST)
    rig.pass_time(1)
    rig.answer(rig.one(), status(404))
    assert rig.result(ticket) is CallResult.DONE


def test_eviction_supersedes_everything_that_waits() -> None:
    rig = rig_with(Eviction())
    tickets = [rig.offer(patch(), pod()), rig.offer(bind())]
    rig.offer(Evict(bind().key))
    assert {rig.result(t) for t in tickets} == {CallResult.OVERWRITTEN}
    assert rig.one().call_type == "evict"


@pytest.mark.parametrize("method", ["prepare", "slot", "lane", "merge", "requests", "on_result", "rebase"])
def test_a_type_that_raises_fails_its_call_and_nothing_else(method: str) -> None:
    broken = Painting()

    def bang(*_: object) -> Any:
        raise ValueError("bang")

    setattr(broken, method, bang)
    rig = rig_with(broken)
    other = rig.offer(bind())
    tickets = [rig.offer(Paint(WIDGET, "red"), KubeObject()), rig.offer(Paint(WIDGET, "blue"), KubeObject())]
    for _ in range(3):
        for dispatch in rig.take():
            rig.answer(dispatch, ok())
    failed = [rig.outcomes[t] for t in tickets if rig.result(t) is CallResult.FAILED]
    assert failed
    assert failed[0].error == f"call type 'paint' raised ValueError in {method}: bang"
    assert set(rig.outcomes) == {other, *tickets}
    assert rig.result(other) is CallResult.DONE
    assert rig.queue.is_idle


def test_too_few_requests_are_a_failure() -> None:
    painting = Painting()
    painting.requests = lambda *_: ()  # type: ignore[method-assign]
    rig = rig_with(painting)
    ticket = rig.offer(Paint(WIDGET, "red"))
    assert rig.take() == []
    assert "no request number 1" in rig.outcomes[ticket].error


# The registry


def test_second_implementation_is_refused_and_replace_works() -> None:
    class Mine(PodBinding):
        pass

    types = default_call_types("host")
    with pytest.raises(
        CallTypeError, match=r"'pod_binding' is already implemented by PodBinding; use replace"
    ):
        types.register(Mine())
    mine = Mine()
    assert type(types.replace(mine)) is PodBinding
    assert types.find("pod_binding") is mine
    with pytest.raises(CallTypeError, match="no call type 'paint' to replace"):
        types.replace(Painting())


def test_replaced_implementation_is_used() -> None:
    class Elsewhere(PodBinding):
        def requests(self, call: BindPod, base: KubeObject | None, now: float) -> Sequence[Request]:
            return (Request("POST", "/elsewhere"),)

    types = default_call_types("host")
    types.replace(Elsewhere())
    rig = Rig(CallQueue(types))
    rig.offer(bind())
    assert rig.one().request.path == "/elsewhere"


def test_types_are_fixed_once_the_queue_runs() -> None:
    types = default_call_types("host")
    CallQueue(types)
    with pytest.raises(CallTypeError, match="fixed once the call queue runs"):
        types.register(Painting())
    with pytest.raises(CallTypeError, match="fixed once"):
        types.replace(PodBinding())


def test_what_is_no_call_type_is_refused_with_its_reason() -> None:
    class Nameless(Painting):
        name = ""

    class Half:
        name = "half"
        relevance = 1

        def requests(self) -> None:
            pass

    for wrong, reason in (
        (Nameless(), "Nameless: a call type needs a non-empty name"),
        (Half(), r"'half' \(Half\) lacks prepare, slot, .*, retry, linger"),
        (Painting, "Painting: register an instance, not the class"),
    ):
        with pytest.raises(CallTypeError, match=reason):
            CallTypes(wrong)  # type: ignore[arg-type]
