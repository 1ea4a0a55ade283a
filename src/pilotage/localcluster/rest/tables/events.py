"""Events as rows."""

from __future__ import annotations

from typing import Any

from pilotage.localcluster.rest.tables.layout import Column, Layout, text, wide
from pilotage.localcluster.rest.timestamps import age_text
from pilotage.localcluster.rest.trees import child
from pilotage.localcluster.rest.trees import text as text_of
from pilotage.localcluster.store import Tree

_COLUMNS = (
    text("Last Seen", "When it happened last."),
    text("Type", "Normal or Warning."),
    text("Reason", "Why, in one word."),
    text("Object", "The object that it is about."),
    wide("Subobject", "The part of the object."),
    wide("Source", "Who says so."),
    text("Message", "What happened."),
    wide("First Seen", "When it happened first."),
    wide("Count", "How often it happened."),
    Column("Name", "The event's own name.", is_wide=True, format="name"),
)


def _cells(tree: Tree, now: float) -> list[Any]:
    series = child(tree, "series") or {}
    involved = child(tree, "involvedObject")
    first = tree.get("firstTimestamp") or tree.get("eventTime")
    last = series.get("lastObservedTime") or tree.get("lastTimestamp") or first
    return [
        age_text(last, now),
        text_of(tree, "type"),
        text_of(tree, "reason"),
        f"{text_of(involved, 'kind').lower()}/{text_of(involved, 'name')}",
        text_of(involved, "fieldPath"),
        _source(tree),
        text_of(tree, "message").strip(),
        age_text(first, now),
        series.get("count") or tree.get("count") or 1,
        tree["metadata"]["name"],
    ]


def _source(tree: Tree) -> str:
    source = child(tree, "source")
    component = text_of(source, "component") or text_of(tree, "reportingComponent")
    host = text_of(source, "host") or text_of(tree, "reportingInstance")
    return ", ".join(name for name in (component, host) if name)


LAYOUT = Layout(_COLUMNS, _cells)
