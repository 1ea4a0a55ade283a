"""What form an answer takes: read from the Accept header, first acceptable range wins."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from pilotage.localcluster.rest.errors import not_acceptable

_META = "meta.k8s.io"
_JSON_TYPES = frozenset(("application/json", "application/*", "*/*", ""))


class Shape(Enum):
    OBJECT = "object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


class Include(Enum):
    """What a table's rows carry besides their cells."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write objects; equal forms share their encoded watch lines."""

    shape: Shape = Shape.OBJECT
    version: str = "v1"  # of meta.k8s.io, for tables and partial metadata
    include: Include = Include.METADATA


PLAIN = Form()
_AS = {
    "Table": Shape.TABLE,
    "PartialObjectMetadata": Shape.METADATA,
    "PartialObjectMetadataList": Shape.METADATA,
}


@lru_cache(maxsize=256)
def media_ranges(accept: str) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """(type, parameters) in the order given."""
    return tuple(_media_range(text) for text in accept.split(","))


def _media_range(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    media, *parameters = (part.strip() for part in text.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return media.lower(), tuple((name.strip().lower(), value.strip()) for name, _, value in pairs)


@lru_cache(maxsize=256)
def negotiate(accept: str, include: str = "") -> Form:
    """The form that `accept` asks for. Raises RestError 406 when there is none."""
    for media, parameters in media_ranges(accept):
        form = _form(media, dict(parameters))
        if form is not None:
            return Form(form.shape, form.version, _include(include)) if form.shape is Shape.TABLE else form
    raise not_acceptable()


def _form(media: str, parameters: dict[str, str]) -> Form | None:
    if media not in _JSON_TYPES:
        return None
    wanted = parameters.get("as")
    if wanted is None:
        return PLAIN
    version = parameters.get("v", "v1")
    if parameters.get("g", _META) != _META or version not in ("v1", "v1beta1") or wanted not in _AS:
        return None
    return Form(_AS[wanted], version)


def _include(text: str) -> Include:
    return next((include for include in Include if include.value == text), Include.METADATA)
