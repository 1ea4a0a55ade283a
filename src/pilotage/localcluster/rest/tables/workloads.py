"""Deployments, replica sets and their kin as rows."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.api.meta import LabelSelector
from pilotage.api.selectors import SelectorError, compile_label_selector, match_labels
from pilotage.localcluster.rest.tables.layout import AGE, NAME, Column, Layout, join, number, text, wide
from pilotage.localcluster.rest.timestamps import age_text, duration_text, parse_time
from pilotage.localcluster.rest.trees import child, children
from pilotage.localcluster.rest.trees import text as text_of
from pilotage.localcluster.store import Tree

_CONTAINERS = wide("Containers", "The containers of the pod template.")
_IMAGES = wide("Images", "The images of the pod template.")
_SELECTOR = wide("Selector", "Which pods belong to it.")
_DESIRED = number("Desired", "How many pods there should be.")
_CURRENT = number("Current", "How many pods there are.")
_READY = number("Ready", "How many pods are ready.")


def _count(tree: Tree | None, name: str) -> int:
    value = (tree or {}).get(name)
    return value if isinstance(value, int) else 0


def _template(tree: Tree, selector: bool = True) -> list[Any]:
    """Containers, images and selector."""
    spec = child(tree, "spec")
    containers = children(child(child(spec, "template"), "spec"), "containers")
    names = join([text_of(container, "name") for container in containers])
    cells = [names, join([text_of(container, "image") for container in containers])]
    return [*cells, selector_text((spec or {}).get("selector"))] if selector else cells


def selector_text(selector: object) -> str:
    if not isinstance(selector, dict):
        return "<none>"
    try:
        if selector.keys() & {"matchLabels", "matchExpressions"}:
            return str(compile_label_selector(msgspec.convert(selector, LabelSelector))) or "<none>"
        return str(match_labels(selector)) or "<none>"
    except (SelectorError, msgspec.ValidationError):
        return "<error>"


def _head(tree: Tree) -> tuple[str, Tree, Tree]:
    return tree["metadata"]["name"], child(tree, "spec") or {}, child(tree, "status") or {}


def _age(tree: Tree, now: float) -> str:
    return age_text(tree["metadata"].get("creationTimestamp"), now)


def _deployment(tree: Tree, now: float) -> list[Any]:
    name, spec, status = _head(tree)
    return [
        name,
        f"{_count(status, 'readyReplicas')}/{_count(spec, 'replicas')}",
        _count(status, "updatedReplicas"),
        _count(status, "availableReplicas"),
        _age(tree, now),
        *_template(tree),
    ]


def _replica_set(tree: Tree, now: float) -> list[Any]:
    name, spec, status = _head(tree)
    counts = [_count(spec, "replicas"), _count(status, "replicas"), _count(status, "readyReplicas")]
    return [name, *counts, _age(tree, now), *_template(tree)]


def _stateful_set(tree: Tree, now: float) -> list[Any]:
    name, spec, status = _head(tree)
    ready = f"{_count(status, 'readyReplicas')}/{_count(spec, 'replicas')}"
    return [name, ready, _age(tree, now), *_template(tree, selector=False)]


def _daemon_set(tree: Tree, now: float) -> list[Any]:
    name, spec, status = _head(tree)
    names = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    template = child(child(spec, "template"), "spec")
    node_selector = join([f"{k}={v}" for k, v in (child(template, "nodeSelector") or {}).items()])
    return [name, *(_count(status, n) for n in names), node_selector, _age(tree, now), *_template(tree)]


def _job(tree: Tree, now: float) -> list[Any]:
    name, spec, status = _head(tree)
    wanted = spec.get("completions")
    done = _count(status, "succeeded")
    start, end = parse_time(status.get("startTime")), parse_time(status.get("completionTime"))
    took = "" if start is None else duration_text((now if end is None else end) - start)
    return [name, _job_status(status), f"{done}/{wanted or 1}", took, _age(tree, now), *_template(tree)]


def _job_status(status: Tree) -> str:
    held = [c for c in children(status, "conditions") if c.get("status") == "True"]
    names = {text_of(condition, "type") for condition in held}
    ended = next((name for name in ("Complete", "Failed", "Suspended") if name in names), "Running")
    return ended


DEPLOYMENTS = Layout(
    (
        NAME,
        text("Ready", "Ready pods of the wanted ones."),
        number("Up-to-date", "How many pods have the newest template."),
        number("Available", "How many pods are available."),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    _deployment,
)
REPLICA_SETS = Layout((NAME, _DESIRED, _CURRENT, _READY, AGE, _CONTAINERS, _IMAGES, _SELECTOR), _replica_set)
STATEFUL_SETS = Layout(
    (NAME, text("Ready", "Ready pods of the wanted ones."), AGE, _CONTAINERS, _IMAGES), _stateful_set
)
DAEMON_SETS = Layout(
    (
        NAME,
        _DESIRED,
        _CURRENT,
        _READY,
        number("Up-to-date", "How many pods have the newest template."),
        number("Available", "How many pods are available."),
        Column("Node Selector", "Which nodes get a pod."),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    _daemon_set,
)
JOBS = Layout(
    (
        NAME,
        text("Status", "How far the job is."),
        text("Completions", "Finished pods of the wanted ones."),
        text("Duration", "How long it took, or has taken so far."),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    _job,
)
