"""Reading a pod that an extender was asked to bind."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from callkit import Rig, pod, pod_key
from pilotage.api.wire import Response
from pilotage.calls.types import NoAnswer
from pilotage.framework.binding_calls import ConfirmBinding
from pilotage.framework.calls import CallResult


def check(rig: Rig, failure: str = "") -> int:
    return rig.offer(ConfirmBinding(pod_key(), "n1", failure))


def shown(node: str = "", uid: str = "uid-p") -> Response:
    body: dict[str, Any] = {"metadata": {"name": "p", "namespace": "ns", "uid": uid}, "spec": {}}
    if node:
        body["spec"]["nodeName"] = node
    return Response(200, msgspec.json.encode(body))


@pytest.mark.parametrize("failure", ["", "it broke"])
def test_a_pod_on_its_node_is_bound_whatever_was_said(failure: str) -> None:
    rig = Rig()
    ticket = check(rig, failure)
    sent = rig.one()
    assert (sent.request.method, sent.request.path) == ("GET", "/api/v1/namespaces/ns/pods/p")
    rig.answer(sent, shown("n1"))
    assert rig.result(ticket) is CallResult.DONE


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (shown(), "it broke"),
        (shown("n2"), 'pod is already assigned to node "n2"'),
        (shown("n1", uid="other"), "the pod was replaced"),
        (Response(404, b"{}"), "the pod is gone"),
        (Response(403, b"{}"), "Forbidden"),
    ],
)
def test_what_fails_at_once(answer: Response, text: str) -> None:
    rig = Rig()
    ticket = check(rig, "it broke")
    rig.answer(rig.one(), answer)
    assert rig.result(ticket) is CallResult.FAILED
    assert text in rig.outcomes[ticket].error


def test_success_is_waited_for_a_while() -> None:
    rig = Rig()
    ticket = check(rig)
    for _ in range(3):
        rig.answer(rig.one(), shown())
        assert rig.result(ticket) is None
        rig.pass_time(10)
    rig.answer(rig.one(), shown("n1"))
    assert rig.result(ticket) is CallResult.DONE


def test_success_that_never_shows_is_a_failure() -> None:
    rig = Rig()
    ticket = check(rig)
    while rig.result(ticket) is None:
        for dispatch in rig.take():
            rig.answer(dispatch, shown())
        rig.pass_time(11)
    assert rig.result(ticket) is CallResult.FAILED
    assert "the pod is not bound" in rig.outcomes[ticket].error


@pytest.mark.parametrize("answer", [NoAnswer(True, "cut"), Response(503, b""), Response(200, b"<html>")])
def test_a_read_that_fails_is_repeated(answer: Any) -> None:
    rig = Rig()
    ticket = check(rig, "it broke")
    rig.answer(rig.one(), answer)
    rig.pass_time(11)
    rig.answer(rig.one(), shown("n1"))
    assert rig.result(ticket) is CallResult.DONE


@pytest.mark.parametrize(("node", "result"), [("n1", CallResult.DONE), ("n2", CallResult.FAILED)])
def test_an_informer_may_be_faster(node: str, result: CallResult) -> None:
    rig = Rig()
    ticket = check(rig)
    rig.sync(pod(version=2, node=node))
    rig.take()
    assert rig.result(ticket) is result
