"""Metadata, selectors and conditions shared by all kinds."""

from __future__ import annotations

import msgspec


class View(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """Base of all typed views: unknown fields are ignored, missing ones take their defaults."""


class OwnerReference(View, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(View, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    generate_name: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class LabelSelectorRequirement(View, frozen=True):
    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(View, frozen=True):
    """Nil (None where it is used) matches nothing, an empty one everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class Condition(View, frozen=True):
    type: str
    status: str = "Unknown"
    reason: str | None = None
    message: str | None = None
    observed_generation: int | None = None
    last_transition_time: str | None = None


class KubeObject(View, frozen=True):
    """What every object has. `kind` and `api_version` may be absent in list items."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for cluster-scoped objects."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
