"""Objects to bytes in the form that was asked for: whole, metadata only, or as table rows.

Whole objects are the stored bytes; only kinds that share a storage are converted on the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pilotage.api.kinds import Kind
from pilotage.localcluster.rest import event_forms
from pilotage.localcluster.rest.negotiation import Form, Include, Shape
from pilotage.localcluster.rest.tables import columns_of, row_cells
from pilotage.localcluster.store import Record, Tree, decode_tree, encode_tree

_FROM_STORED: Mapping[str, Callable[[Tree], Tree]] = {event_forms.RESOURCE: event_forms.from_core}


def body_of(kind: Kind, record: Record) -> bytes:
    """The object as `kind` shows it."""
    convert = _FROM_STORED.get(kind.resource)
    return record.body if convert is None else encode_tree(convert(record.tree()))


def shown_tree(kind: Kind, record: Record) -> Tree:
    """The object as `kind` shows it, decoded: the caller may change it."""
    return decode_tree(body_of(kind, record))


def object_bytes(kind: Kind, record: Record, form: Form, now: float) -> bytes:
    """One object as the answer to a GET, a write, or as the object of a watch line."""
    if form.shape is Shape.OBJECT:
        return body_of(kind, record)
    if form.shape is Shape.METADATA:
        return encode_tree(partial(shown_tree(kind, record), form))
    return encode_tree(table(kind, [record], form, now, version=str(record.version)))


def partial(tree: Tree, form: Form) -> Tree:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": tree.get("metadata", {}),
    }


def table(
    kind: Kind,
    records: Sequence[Record],
    form: Form,
    now: float,
    *,
    version: str,
    has_columns: bool = True,
    metadata: Tree | None = None,
) -> Tree:
    """A Table with one row per record."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": {"resourceVersion": version, **(metadata or {})},
        "columnDefinitions": columns_of(kind) if has_columns else None,
        "rows": [_row(kind, record, form, now) for record in records],
    }


def _row(kind: Kind, record: Record, form: Form, now: float) -> Tree:
    tree = record.tree()
    row: Tree = {"cells": row_cells(kind, tree, now)}
    if form.include is Include.OBJECT:
        row["object"] = shown_tree(kind, record)
    elif form.include is Include.METADATA:
        row["object"] = partial(tree, form)
    return row


def list_bytes(
    kind: Kind, records: Sequence[Record], form: Form, now: float, version: str, metadata: Tree
) -> bytes:
    """A whole list. `metadata`: what stands beside its resourceVersion (continue, remainingItemCount)."""
    if form.shape is Shape.TABLE:
        return encode_tree(table(kind, records, form, now, version=version, metadata=metadata))
    is_partial = form.shape is Shape.METADATA
    head: Tree = {
        "kind": "PartialObjectMetadataList" if is_partial else f"{kind.kind}List",
        "apiVersion": f"meta.k8s.io/{form.version}" if is_partial else kind.api_version,
        "metadata": {"resourceVersion": version, **metadata},
    }
    items = b",".join([object_bytes(kind, record, form, now) for record in records])
    return b'%b,"items":[%b]}' % (encode_tree(head)[:-1], items)
