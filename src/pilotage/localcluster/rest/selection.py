"""Which objects of a resource a request is about: namespace, labels and fields, compiled once."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.api.selectors import LabelMatcher, SelectorError, parse_field_selector, parse_label_selector
from pilotage.localcluster.rest.call import Call
from pilotage.localcluster.rest.errors import bad_request
from pilotage.localcluster.rest.fields import METADATA_FIELDS, SELECTABLE, stored_field
from pilotage.localcluster.store import Record


@dataclass(frozen=True, slots=True)
class FieldTerm:
    field: str
    is_equal: bool
    value: str


@dataclass(frozen=True, slots=True)
class Selection:
    """`labels` is None when all are wanted."""

    namespace: str
    labels: LabelMatcher | None
    fields: tuple[FieldTerm, ...]

    @property
    def is_narrow(self) -> bool:
        """Whether labels or fields leave anything out."""
        return self.labels is not None or bool(self.fields)

    def matches(self, record: Record) -> bool:
        if self.namespace and record.namespace != self.namespace:
            return False
        for term in self.fields:
            if (_value(record, term.field) == term.value) is not term.is_equal:
                return False
        return self.labels is None or self.labels.matches(record.labels)


def _value(record: Record, field: str) -> str:
    if field == "metadata.name":
        return record.name
    if field == "metadata.namespace":
        return record.namespace
    return record.fields.get(field, "")


def selection_of(call: Call) -> Selection:
    """Raises RestError 400 for selectors that cannot be read or name fields that are not selectable."""
    labels, fields = call.query.get("labelSelector", ""), call.query.get("fieldSelector", "")
    try:
        matcher = parse_label_selector(labels) if labels else None
        terms = parse_field_selector(fields) if fields else ()
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None
    chosen = tuple(_term(call, *term) for term in terms)
    if call.name:
        chosen += (FieldTerm("metadata.name", True, call.name),)
    return Selection(call.namespace, matcher, chosen)


def _term(call: Call, name: str, operator: str, value: str) -> FieldTerm:
    resource = call.kind.storage_resource
    field = stored_field(resource, name)
    if field not in SELECTABLE.get(resource, METADATA_FIELDS):
        raise bad_request(f"field label not supported: {name}")
    return FieldTerm(field, operator != "!=", value)
