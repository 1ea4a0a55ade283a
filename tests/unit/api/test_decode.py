"""JSON into views: one bad object never hides the others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api.decode import (
    DecodeError,
    DecodeFailure,
    EnvelopeError,
    convert_object,
    decode_list,
    decode_object,
    decode_watch_line,
)
from pilotage.api.kinds import by_resource
from pilotage.api.meta import KubeObject
from pilotage.api.pods import Pod
from pilotage.api.rest_kind import Kind
from pilotage.api.wire import Status

encode = msgspec.json.encode


def kind(resource: str) -> Kind:
    found = by_resource(resource)
    assert found is not None
    return found


PODS = kind("pods")


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": "7"}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def page(*items: Any, **metadata: str) -> bytes:
    return encode({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": list(items)})


def test_view_of_an_object_with_unknown_fields() -> None:
    decoded = decode_object(PODS, encode({**pod(nodeName="n1", futureField={"x": 1}), "future": []}))
    assert isinstance(decoded, Pod)
    assert (decoded.key, decoded.spec.node_name) == ("ns/a", "n1")


def test_quantities_stay_as_they_were_written() -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "1 Gi", "memory": 5, "x/y": 0.5}}}
    decoded = decode_object(PODS, encode(pod(containers=[container])))
    assert isinstance(decoded, Pod)
    assert decoded.spec.containers[0].resources.requests == {"cpu": "1 Gi", "memory": 5, "x/y": 0.5}


def test_null_counts_as_absent() -> None:
    decoded = decode_object(PODS, encode(pod(nodeName=None, containers=[{"name": "c", "image": None}])))
    assert isinstance(decoded, Pod)
    assert decoded.spec.node_name == ""
    assert decoded.spec.containers[0].image == ""


def test_failure_names_object_and_field() -> None:
    bad = pod(containers=[{"name": "c", "ports": "x"}], schedulerName="mine", nodeName="n1")
    with pytest.raises(DecodeError) as caught:
        decode_object(PODS, encode(bad))
    failure = caught.value.failure
    assert (failure.resource, failure.namespace, failure.name, failure.uid) == ("pods", "ns", "a", "u-a")
    assert failure.resource_version == "7"
    assert (failure.scheduler_name, failure.node_name) == ("mine", "n1")
    assert failure.error.startswith("spec.containers[0].ports: ")
    assert "spec.containers[0].ports" in str(caught.value)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"7", b'"x"', b"null", b'{"metadata": 3}', b'{"metadata":{"name":3}}']
)
def test_any_rubbish_is_a_decode_error(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_object(PODS, raw)


def test_invalid_utf8_is_a_failure_of_that_object() -> None:
    good, bad = encode(pod("a")), encode(pod("b")).replace(b'"image":"i"', b'"image":"\xff"')
    body = b'{"metadata":{"resourceVersion":"5"},"items":[' + good + b"," + bad + b"]}"
    items = decode_list(PODS, body).items
    assert isinstance(items[0], Pod)
    assert isinstance(items[1], DecodeFailure)
    assert items[1].name == "b"


def test_kind_without_view_gives_metadata() -> None:
    decoded = decode_object(kind("configmaps"), encode({"metadata": {"name": "x"}, "data": {"a": "b"}}))
    assert type(decoded) is KubeObject
    assert decoded.metadata.name == "x"


def test_convert_takes_a_parsed_tree() -> None:
    assert convert_object(PODS, pod(nodeName=None)).key == "ns/a"
    with pytest.raises(DecodeError, match=r"spec\.containers"):
        convert_object(PODS, pod(containers="x"))


def test_list_page() -> None:
    listed = decode_list(PODS, page(pod("a"), pod("b"), resourceVersion="42", **{"continue": "tok"}))
    assert (listed.resource_version, listed.continue_token) == ("42", "tok")
    assert [item.metadata.name for item in listed.items if isinstance(item, Pod)] == ["a", "b"]


def test_list_without_items_or_continue() -> None:
    for body in (
        b'{"metadata":{"resourceVersion":"1"}}',
        b'{"metadata":{"resourceVersion":"1"},"items":null}',
    ):
        listed = decode_list(PODS, body)
        assert (listed.items, listed.continue_token, listed.resource_version) == ([], "", "1")


def test_one_undecodable_object_in_five_thousand() -> None:
    items = [pod(f"p{number}") for number in range(5000)]
    items[1234]["spec"]["tolerations"] = {"not": "a list"}
    listed = decode_list(PODS, page(*items, resourceVersion="9"))
    failures = [item for item in listed.items if isinstance(item, DecodeFailure)]
    assert len(listed.items) == 5000
    assert [(f.name, f.error.partition(":")[0]) for f in failures] == [("p1234", "spec.tolerations")]
    assert listed.items.index(failures[0]) == 1234


def test_items_that_are_no_objects() -> None:
    listed = decode_list(PODS, page(3, None, pod("a"), [1]))
    assert [isinstance(item, DecodeFailure) for item in listed.items] == [True, True, False, True]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"items": 3}', b'{"items":[1}'])
def test_what_is_no_list(body: bytes) -> None:
    with pytest.raises(EnvelopeError):
        decode_list(PODS, body)


@pytest.mark.parametrize("event_type", ["ADDED", "MODIFIED", "DELETED"])
def test_watch_line_with_an_object(event_type: str) -> None:
    event = decode_watch_line(PODS, encode({"type": event_type, "object": pod()}))
    assert event.type == event_type
    assert isinstance(event.object, Pod)


def test_watch_line_with_a_bad_object() -> None:
    event = decode_watch_line(PODS, encode({"type": "ADDED", "object": pod(containers=3)}))
    assert isinstance(event.object, DecodeFailure)
    assert event.object.name == "a"


def test_bookmark() -> None:
    metadata = {
        "resourceVersion": "9",
        "annotations": {"k8s.io/initial-events-end": "true"},
        "creationTimestamp": None,
    }
    event = decode_watch_line(
        PODS, encode({"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": metadata}})
    )
    assert isinstance(event.object, KubeObject)
    assert event.object.metadata.resource_version == "9"
    assert event.object.metadata.annotations == {"k8s.io/initial-events-end": "true"}


def test_error_event_is_a_status() -> None:
    status = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}
    event = decode_watch_line(PODS, encode({"type": "ERROR", "object": status}))
    assert event.object == Status(status="Failure", reason="Expired", code=410, message="too old")


@pytest.mark.parametrize("raw", [{}, {"some": "thing"}, 3, {"code": "x"}])
def test_error_event_without_status_is_an_internal_error(raw: Any) -> None:
    event = decode_watch_line(PODS, encode({"type": "ERROR", "object": raw}))
    assert isinstance(event.object, Status)
    assert (event.object.code, event.object.reason) == (500, "InternalError")


@pytest.mark.parametrize(
    "line", [b"", b"{", b"{}", b'{"type":"ADDED"}', b'{"type":"NEW","object":{}}', b'{"type":1,"object":{}}']
)
def test_what_is_no_watch_line(line: bytes) -> None:
    with pytest.raises(EnvelopeError):
        decode_watch_line(PODS, line)
