"""What the store keeps: encoded objects under a small typed header.

A whole object as a tree of dicts costs three times its JSON and is walked by every collection of the
cyclic garbage collector. So objects rest as bytes; the header holds what reading without decoding needs:
identity, version, labels and the values of the kind's selectable fields. Nothing here can form a cycle
(`gc=False` relies on it).
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeAlias

import msgspec

Tree: TypeAlias = dict[str, Any]
"""A decoded JSON object. `Any` because Kubernetes objects are open: the store never looks inside."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One version of one object. `body` is its JSON, `metadata.resourceVersion` included."""

    namespace: str
    name: str
    uid: str
    version: int
    labels: dict[str, str] | None
    fields: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        return object_key(self.namespace, self.name)

    def tree(self) -> Tree:
        """A fresh tree that the caller may change."""
        return decode_tree(self.body)


class ChangeType(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(msgspec.Struct, gc=False):
    """One write: `old` is None for ADDED; for DELETED `new` is the last state under the deletion's version.

    `frames` caches encoded watch lines by (form, kind of line), so that all watchers of one form share
    one encoding. The store neither fills nor reads it.
    """

    type: ChangeType
    version: int
    old: Record | None
    new: Record
    frames: dict[object, bytes]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Tree).decode


def encode_tree(tree: object) -> bytes:
    return _encode(tree)


def decode_tree(body: bytes) -> Tree:
    """Raises msgspec.DecodeError when `body` is not one JSON object."""
    return _decode(body)


def object_key(namespace: str, name: str) -> str:
    """Sorts like etcd's keys: by namespace, then name."""
    return f"{namespace}/{name}"
