"""Protobuf bodies: as Go clients write them, into the tree that JSON would give."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from pilotage.localcluster.rest.protobuf import ProtobufError, decode
from restkit import PODS, Api

PROTOBUF = "application/vnd.kubernetes.protobuf"


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(*fields: tuple[int, Any]) -> bytes:
    """Fields as (number, int | str | bytes)."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(raw)) + raw
    return out


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + message((1, message((1, api_version), (2, kind))), (2, raw), (3, ""), (4, ""))


def pod(*spec: tuple[int, Any]) -> bytes:
    meta = message((1, "p"), (3, ""), (8, b""), (11, message((1, "app"), (2, "web"))))
    return body("v1", "Pod", message((1, meta), (2, message(*spec)), (3, message((1, "")))))


def test_a_pod() -> None:
    requests = message((2, message((1, "cpu"), (2, message((1, "500m"))))))
    port = message((1, ""), (2, 0), (3, 8080), (4, "TCP"), (5, ""))
    container = message((1, "c"), (2, "img"), (6, port), (8, requests), (14, ""), (16, 0))
    volume = message((1, "v"), (2, message((2, message((1, ""))))))
    toleration = message((1, "k"), (2, "Exists"), (4, "NoExecute"), (5, -1))
    tree = decode(
        pod((1, volume), (2, container), (4, 0), (7, message((1, "a"), (2, ""))), (11, 0), (22, toleration))
    )
    assert tree == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p", "labels": {"app": "web"}},
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [
                {
                    "name": "c",
                    "image": "img",
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "resources": {"requests": {"cpu": "500m"}},
                }
            ],
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"a": ""},
            "tolerations": [
                {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -1}
            ],
        },
    }


def test_times_and_numbers_or_strings() -> None:
    lease = message((2, message((1, "me"), (4, message((1, 1_800_000_000), (2, 5_000_000))))))
    assert (
        decode(body("coordination.k8s.io/v1", "Lease", lease))["spec"]["renewTime"]
        == "2027-01-15T08:00:00.005000Z"
    )
    for raw, value in ((message((1, 0), (2, 3)), 3), (message((1, 1), (3, "50%")), "50%")):
        tree = decode(body("policy/v1", "PodDisruptionBudget", message((2, message((1, raw))))))
        assert tree["spec"]["minAvailable"] == value


def test_delete_options_of_any_group() -> None:
    tree = decode(body("apps/v1", "DeleteOptions", message((1, 0), (4, "Background"))))
    assert (tree["gracePeriodSeconds"], tree["propagationPolicy"]) == (0, "Background")


def test_wrapped_lists_and_bytes() -> None:
    extra = message((1, "scopes"), (2, message((1, "a"), (1, "b"))))
    review = message((2, message((3, "u"), (5, extra))))
    tree = decode(body("authorization.k8s.io/v1", "SubjectAccessReview", review))
    assert tree["spec"] == {"user": "u", "extra": {"scopes": ["a", "b"]}}
    secret = message((2, message((1, "k"), (2, b"\x00\xff"))))
    assert decode(body("v1", "Secret", secret))["data"] == {"k": "AP8="}


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{}",
        b"k8s\x00\xff",
        body("v1", "Nonsense", b""),
        body("v1", "Pod", b"\x0a\xff\x01x"),
        body("v1", "Pod", struct.pack("B", 0x0B)),
        body("v1", "Pod", message((1, 5))),
    ],
)
def test_broken_bodies(broken: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode(broken)


def test_over_the_api() -> None:
    api = Api()
    container = message((1, "c"), (2, "img"))
    answer = api.call("POST", PODS, pod((2, container)), media=PROTOBUF)
    assert answer.status == 201, answer.body
    assert answer.body["spec"]["schedulerName"] == "default-scheduler"
    binding = body("v1", "Binding", message((1, message((1, "p"))), (2, message((1, "Node"), (3, "n1")))))
    assert api.call("POST", f"{PODS}/p/binding", binding, media=PROTOBUF).status == 201
    assert api.get(f"{PODS}/p").body["spec"]["nodeName"] == "n1"
    assert api.call("POST", PODS, b"k8s\x00\x07", media=PROTOBUF).status == 400
