"""ApiClient and discovery against a table of answers: paths, queries, bodies, pages, errors."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from pilotage.api.kinds import Kind, by_resource
from pilotage.api.wire import Request, Response
from pilotage.client.api import ApiClient, ApiError, PatchType
from pilotage.client.discovery import discover
from unit.client.scripted_transport import ScriptedStream, error_event, event, page, pod, refused, status


def kind(resource: str) -> Kind:
    found = by_resource(resource)
    assert found is not None
    return found


PODS, NODES, DEPLOYMENTS = kind("pods"), kind("nodes"), kind("deployments.apps")


@dataclass
class Answers:
    """Gives the answers in order and keeps the requests."""

    answers: list[Response] = field(default_factory=lambda: [Response(200, b"{}")])
    streams: list[ScriptedStream] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        del timeout
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def stream(self, request: Request) -> ScriptedStream:
        self.requests.append(request)
        return self.streams.pop(0)

    async def close(self) -> None:
        pass

    @property
    def last(self) -> tuple[str, str, dict[str, str], Any, str]:
        request = self.requests[-1]
        body = json.loads(request.body) if request.body else None
        return request.method, request.path, dict(request.query), body, request.content_type


MANAGER = {"fieldManager": "pilotage"}
JSON = "application/json"


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda a: a.get(NODES, "n1"), ("GET", "/api/v1/nodes/n1", {}, None, JSON)),
        (
            lambda a: a.get(PODS, "p", "x", subresource="status"),
            ("GET", "/api/v1/namespaces/x/pods/p/status", {}, None, JSON),
        ),
        (
            lambda a: a.create(DEPLOYMENTS, {"metadata": {"name": "d", "namespace": "x"}}),
            (
                "POST",
                "/apis/apps/v1/namespaces/x/deployments",
                MANAGER,
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "d", "namespace": "x"},
                },
                JSON,
            ),
        ),
        (
            lambda a: a.create(PODS, {"kind": "Binding"}, "x", name="p", subresource="binding"),
            ("POST", "/api/v1/namespaces/x/pods/p/binding", MANAGER, {"kind": "Binding"}, JSON),
        ),
        (
            lambda a: a.update(NODES, {"metadata": {"name": "n"}}, subresource="status", dry_run=True),
            (
                "PUT",
                "/api/v1/nodes/n/status",
                MANAGER | {"dryRun": "All"},
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}},
                JSON,
            ),
        ),
        (
            lambda a: a.patch(PODS, "p", {"a": 1}, "x", patch_type=PatchType.STRATEGIC),
            (
                "PATCH",
                "/api/v1/namespaces/x/pods/p",
                MANAGER,
                {"a": 1},
                "application/strategic-merge-patch+json",
            ),
        ),
        (
            lambda a: a.patch(PODS, "p", {}, "x", patch_type=PatchType.APPLY, field_manager="me", force=True),
            (
                "PATCH",
                "/api/v1/namespaces/x/pods/p",
                {"fieldManager": "me", "force": "true"},
                {},
                "application/apply-patch+yaml",
            ),
        ),
        (
            lambda a: a.delete(PODS, "p", "x", grace_seconds=0, propagation="Orphan", uid="u"),
            (
                "DELETE",
                "/api/v1/namespaces/x/pods/p",
                {},
                {
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "gracePeriodSeconds": 0,
                    "propagationPolicy": "Orphan",
                    "preconditions": {"uid": "u"},
                },
                JSON,
            ),
        ),
        (
            lambda a: a.delete_collection(PODS, "x", label_selector="a=b"),
            (
                "DELETE",
                "/api/v1/namespaces/x/pods",
                {"labelSelector": "a=b"},
                {"apiVersion": "v1", "kind": "DeleteOptions"},
                JSON,
            ),
        ),
    ],
)
def test_what_each_verb_sends(use: Any, expected: Any) -> None:
    transport = Answers()
    asyncio.run(use(ApiClient(transport)))
    assert transport.last == expected


def test_list_puts_pages_together() -> None:
    transport = Answers([page("9", pod("a", "1"), token="t"), page("9", pod("b", "2"))])
    whole = asyncio.run(ApiClient(transport).list(PODS, label_selector="x", limit=1))
    assert [item["metadata"]["name"] for item in whole["items"]] == ["a", "b"]
    assert whole["metadata"] == {"resourceVersion": "9"}
    assert [dict(r.query) for r in transport.requests] == [
        {"labelSelector": "x", "limit": "1"},
        {"labelSelector": "x", "limit": "1", "continue": "t"},
    ]


def test_refusals_carry_their_status() -> None:
    body = {
        "kind": "Status",
        "reason": "Invalid",
        "message": "no",
        "details": {"causes": [{"field": "spec.x"}], "retryAfterSeconds": 4},
    }
    transport = Answers([Response(422, json.dumps(body).encode())])
    with pytest.raises(ApiError) as caught:
        asyncio.run(ApiClient(transport).get(PODS, "p", "x"))
    problem = caught.value
    assert (problem.status, problem.reason, problem.message) == (422, "Invalid", "no")
    assert problem.details["causes"] == [{"field": "spec.x"}]
    assert problem.retry_after == 4.0
    assert str(problem) == "no (422 Invalid)"


@pytest.mark.parametrize("body", [b"", b"<html>busy</html>", b"[1]", b"\xff\xfe"])
def test_refusals_of_something_that_is_no_kubernetes(body: bytes) -> None:
    transport = Answers([Response(502, body, {"retry-after": "3"})])
    with pytest.raises(ApiError) as caught:
        asyncio.run(ApiClient(transport).get(PODS, "p", "x"))
    assert (caught.value.status, caught.value.reason, caught.value.retry_after) == (502, "", 3.0)
    assert str(caught.value)


def test_an_answer_that_is_no_json_object() -> None:
    with pytest.raises(ApiError, match="not a JSON object"):
        asyncio.run(ApiClient(Answers([Response(200, b"[]")])).get(PODS, "p", "x"))


async def _watch(transport: Answers, **options: Any) -> list[tuple[str, str]]:
    found = []
    async for kind_of, item in ApiClient(transport).watch(PODS, "x", **options):
        found.append((kind_of, item["metadata"]["name"]))
    return found


def test_watch_until_the_server_ends_it() -> None:
    stream = ScriptedStream([event("ADDED", pod("a", "1")), event("DELETED", pod("a", "2"))])
    transport = Answers(streams=[stream])
    told = asyncio.run(_watch(transport, resource_version="7", bookmarks=True, timeout_seconds=5))
    assert told == [("ADDED", "a"), ("DELETED", "a")]
    assert stream.closed
    assert transport.last[2] == {
        "watch": "true",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "5",
    }


@pytest.mark.parametrize(
    "stream", [ScriptedStream([error_event(410, "Expired")]), refused(status(410, "Expired"))]
)
def test_watch_that_is_too_old_raises(stream: ScriptedStream) -> None:
    with pytest.raises(ApiError) as caught:
        asyncio.run(_watch(Answers(streams=[stream])))
    assert caught.value.is_expired
    assert stream.closed


def resources(*names: str, verbs: tuple[str, ...] = ("list", "watch")) -> Response:
    items = [{"name": name, "verbs": list(verbs)} for name in names]
    return Response(200, json.dumps({"kind": "APIResourceList", "resources": items}).encode())


def test_discovery_leaves_out_what_the_server_lacks() -> None:
    transport = Answers(
        [resources("pods", "pods/status", "nodes"), status(404, "NotFound"), resources("podtemplates")]
    )
    wanted = [PODS, DEPLOYMENTS, NODES, kind("storageclasses.storage.k8s.io")]
    found = asyncio.run(discover(transport, wanted))
    assert found.served == (PODS, NODES)
    assert found.missing == (DEPLOYMENTS, kind("storageclasses.storage.k8s.io"))
    assert [r.path for r in transport.requests] == ["/api/v1", "/apis/apps/v1", "/apis/storage.k8s.io/v1"]


def test_discovery_wants_list_and_watch() -> None:
    found = asyncio.run(discover(Answers([resources("pods", verbs=("create",))]), [PODS]))
    assert found.missing == (PODS,)


@pytest.mark.parametrize("answer", [status(503, "ServiceUnavailable"), Response(200, b"<html>")])
def test_discovery_does_not_take_trouble_for_absence(answer: Response) -> None:
    with pytest.raises(ApiError):
        asyncio.run(discover(Answers([answer]), [PODS]))
