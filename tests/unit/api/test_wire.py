"""Status bodies, watch frames and selector queries."""

from __future__ import annotations

import msgspec

from pilotage.api.decode import decode_watch_line
from pilotage.api.kinds import by_resource
from pilotage.api.meta import KubeObject
from pilotage.api.selectors import parse_field_selector
from pilotage.api.wire import (
    bookmark_frame,
    decode_status,
    selector_query,
    status_body,
    status_tree,
    watch_frame,
)


def test_failure_status() -> None:
    body = msgspec.json.decode(
        status_body(404, "NotFound", 'pods "x" not found', name="x", kind="pods", uid=None)
    )
    assert body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods "x" not found',
        "reason": "NotFound",
        "details": {"name": "x", "kind": "pods"},
        "code": 404,
    }


def test_success_status_has_no_details_of_its_own() -> None:
    tree = status_tree(201, "", "")
    assert tree["status"] == "Success"
    assert {"message", "reason", "details"}.isdisjoint(tree)


def test_status_is_read_back_with_causes() -> None:
    cause = {"reason": "FieldValueInvalid", "message": "bad", "field": "spec.x"}
    status = decode_status(status_body(429, "TooManyRequests", "later", retryAfterSeconds=3, causes=[cause]))
    assert status is not None
    assert (status.code, status.reason) == (429, "TooManyRequests")
    assert status.details is not None
    assert status.details.retry_after_seconds == 3
    assert status.details.causes is not None
    assert status.details.causes[0].field == "spec.x"


def test_what_is_no_status() -> None:
    for body in (
        b"",
        b"<html>bad gateway</html>",
        b"[]",
        b"null",
        b"{}",
        b'{"kind":"Pod"}',
        b'{"status":{}}',
        b"\xff",
    ):
        assert decode_status(body) is None


def test_frames_are_one_line_each() -> None:
    assert watch_frame("ADDED", b'{"a":1}') == b'{"type":"ADDED","object":{"a":1}}\n'
    pods = by_resource("pods")
    assert pods is not None
    frame = bookmark_frame("Pod", "v1", "12", {"k8s.io/initial-events-end": "true"})
    assert frame.count(b"\n") == 1
    event = decode_watch_line(pods, frame.rstrip(b"\n"))
    assert isinstance(event.object, KubeObject)
    assert event.object.metadata.resource_version == "12"


def test_selector_queries() -> None:
    assert selector_query() == {}
    assert selector_query({"a": "b", "c": ""}, "x!=y") == {"labelSelector": "a=b,c=", "fieldSelector": "x!=y"}
    query = selector_query(fields={"metadata.name": r"a,b=c\d"})
    assert parse_field_selector(query["fieldSelector"]) == (("metadata.name", "=", r"a,b=c\d"),)
