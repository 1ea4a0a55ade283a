"""Kubernetes' protobuf bodies, read into the same trees as JSON.

Typed Go clients (kubectl create, kube-scheduler) write protobuf unless told otherwise; they read JSON. So
this only decodes. Numbers and types come from `protobuf.json` (see scripts/build_protobuf.py). Law: the
tree is what Go's JSON of the same object would be: zero values of optional plain fields are left out.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import msgspec

from pilotage.localcluster.store import Tree

_MAGIC: Final = b"k8s\x00"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MARKS: Final = ("*", "[]", "{}")


class ProtobufError(ValueError):
    """Not a protobuf object of a kind that is known here."""


class _Field(NamedTuple):
    name: str  # "": its members belong to the parent
    marks: tuple[str, ...]  # "*", "[]", "{}" from the outside in
    type: str
    is_dropped: bool  # left out when zero


class _File(msgspec.Struct, frozen=True):
    kinds: dict[str, str]
    types: dict[str, dict[str, str]]


def decode(body: bytes) -> Tree:
    """The object in a request body. Raises ProtobufError."""
    if not body.startswith(_MAGIC):
        raise ProtobufError("the body does not start with protobuf's mark")
    try:
        envelope = dict(_wire(body[len(_MAGIC) :]))
        identity = {number: _text(value) for number, value in _wire(envelope.get(1, b""))}
        api_version, kind = identity.get(1, ""), identity.get(2, "")
        name = _file().kinds.get(f"{api_version} {kind}") or _file().kinds.get(f" {kind}")
        if name is None:
            raise ProtobufError(f"{kind} of {api_version} is no kind that is served")
        return {"kind": kind, "apiVersion": api_version, **_message(name, envelope.get(2, b""))}
    except (IndexError, TypeError, AttributeError, OverflowError, struct.error, UnicodeDecodeError):
        raise ProtobufError("the body is broken") from None


@cache
def _file() -> _File:
    raw = files("pilotage.localcluster.rest").joinpath("protobuf.json").read_bytes()
    return msgspec.json.decode(raw, type=_File)


@cache
def _fields(type_name: str) -> Mapping[int, _Field]:
    return {int(number): _field(text) for number, text in _file().types[type_name].items()}


def _field(text: str) -> _Field:
    name, _, spec = text.partition(":")
    marks: list[str] = []
    while mark := next((mark for mark in _MARKS if spec.startswith(mark)), ""):
        marks.append(mark)
        spec = spec.removeprefix(mark)
    return _Field(name, tuple(marks), spec.removesuffix("?"), spec.endswith("?"))


def _wire(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value): integers for varints, bytes for everything else."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                yield tag >> 3, value
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise IndexError
                yield tag >> 3, data[at : at + size]
                at += size
            case 1 | 5 as width:
                size = 8 if width == 1 else 4
                yield tag >> 3, data[at : at + size]
                at += size
            case _:
                raise IndexError


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _message(type_name: str, data: bytes) -> Any:
    """An object; for a wrapped list the list itself."""
    fields, tree = _fields(type_name), {}
    for number, raw in _wire(data):
        field = fields.get(number)
        if field is None:
            continue
        if not field.name and field.marks:
            return [_value(field.type, item) for _, item in _wire(data)]
        if not field.name:
            tree.update(_message(field.type, raw))
        else:
            _put(tree, field, raw)
    return tree


def _put(tree: Tree, field: _Field, raw: Any) -> None:
    if "[]" in field.marks:
        tree.setdefault(field.name, []).append(_value(field.type, raw))
    elif "{}" in field.marks:
        entry = dict(_wire(raw))
        value = entry.get(2, b"" if field.type not in ("int", "bool") else 0)
        tree.setdefault(field.name, {})[_text(entry.get(1, b""))] = _value(field.type, value)
    else:
        value = _value(field.type, raw)
        is_zero = value in ("", 0, None) or value == {}
        if not is_zero or field.marks or not field.is_dropped:
            tree[field.name] = value


def _value(type_name: str, raw: Any) -> Any:
    convert = _SCALARS.get(type_name)
    return convert(raw) if convert is not None else _message(type_name, raw)


def _text(raw: bytes) -> str:
    return raw.decode()


def _integer(raw: int) -> int:
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _time(raw: bytes) -> str | None:
    parts = dict(_wire(raw))
    return _moment(parts).strftime("%Y-%m-%dT%H:%M:%SZ") if parts else None


def _micro_time(raw: bytes) -> str | None:
    parts = dict(_wire(raw))
    return _moment(parts).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if parts else None


def _moment(parts: Mapping[int, int]) -> datetime:
    return _EPOCH + timedelta(seconds=_integer(parts.get(1, 0)), microseconds=parts.get(2, 0) // 1000)


def _quantity(raw: bytes) -> str:
    return _text(dict(_wire(raw)).get(1, b"0"))


def _int_or_string(raw: bytes) -> int | str:
    parts = dict(_wire(raw))
    return _text(parts.get(3, b"")) if parts.get(1) else _integer(parts.get(2, 0))


def _raw_json(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(dict(_wire(raw)).get(1, b"null"))
    except msgspec.DecodeError:
        raise ProtobufError("an embedded object is no JSON") from None


_SCALARS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "str": _text,
    "bool": bool,
    "int": _integer,
    "bytes": lambda raw: b64encode(raw).decode(),
    "float": lambda raw: struct.unpack("<d", raw)[0],
    "Time": _time,
    "MicroTime": _micro_time,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "RawJson": _raw_json,
}
