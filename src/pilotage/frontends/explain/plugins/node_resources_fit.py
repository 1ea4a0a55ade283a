"""NodeResourcesFit: what the pod needs, what is free of what, and how much less would do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pilotage.framework.status import Status
from pilotage.frontends.explain.amounts import amount, amounts, names, number_of
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import Detail
from pilotage.frontends.explain.plugins.base import PluginExplanation
from pilotage.frontends.explain.scenario import Change, Scenario, asking_for
from pilotage.plugins.node_resources_fit import NodeResourcesFit as FitPlugin
from pilotage.state.overlay import NodeOverlay
from pilotage.state.resources import is_counted
from pilotage.state.view import Int64, NodeView, Rows

NAME = "NodeResourcesFit"
_COMBINATIONS = 3


class NodeResourcesFit(PluginExplanation):
    def detail(self, look: Look, row: int, status: Status) -> Detail:
        if look.view.defective[row]:
            return Detail(look.view.defect(row))
        if look.pod.defect:
            return Detail(look.pod.defect)
        view = look.place(row).view
        short = [entry for entry in _balance(look, view, row) if entry["resource"] != "pods"]
        parts = [_part(entry) for entry in short]
        pods, allowed = int(view.pod_count[row]), int(view.allowed_pods[row])
        if pods >= allowed:
            parts.append(f"{number_of(pods, 'pod')} on it, {allowed} allowed")
            short.append(
                {"resource": "pods", "needs": 1, "used": pods, "free": allowed - pods, "of": allowed}
            )
        group = ", ".join(str(entry["resource"]) for entry in short)
        return Detail("; ".join(parts), group, {"resources": short})

    def summary(self, details: Sequence[Detail]) -> str:
        """`needs 2000m cpu, 100m to 1500m free of 4000m`"""
        if not details[0].numbers:
            return super().summary(details)
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for entry in (entry for detail in details for entry in detail.numbers["resources"]):
            found[entry["resource"]].append(entry)
        return "; ".join(_range(resource, entries) for resource, entries in found.items())

    def changes(self, look: Look, rows: Rows) -> Iterable[Change]:
        rows = rows[~look.view.defective[rows]]
        if not rows.size or look.pod.defect:
            return
        is_full = look.view.pod_count[rows] >= look.view.allowed_pods[rows]
        if is_full.any():
            weight = int(is_full.sum())
            yield Change("with room for one more pod (allocatable pods)", NAME, _WithSlots(look.view), weight)
        yield from _reductions(look, _looked_at(look), rows)

    def score(self, look: Look, row: int) -> str:
        """The scoring amounts, which count 100m and 200Mi for containers that ask for nothing."""
        used, own = look.view.nonzero_requested[row].tolist(), look.pod.nonzero
        parts = []
        for index, resource in enumerate(("cpu", "memory")):
            column = look.view.column(resource)
            offered = 0 if column is None else int(look.view.allocatable[row, column])
            total = amount(resource, used[index] + own[index])
            parts.append(f"{resource} {total} of {amount(resource, offered)} with the pod")
        return f"{', '.join(parts)} (containers without requests count as 100m, 200Mi)"


def _looked_at(look: Look) -> list[str]:
    """Resources that the pod asks for and that the plugin's arguments do not leave out."""
    plugin = look.profile.plugins.get(NAME)
    looks_at = plugin.looks_at if isinstance(plugin, FitPlugin) else is_counted
    return sorted(filter(looks_at, look.pod.requests))


def _balance(look: Look, view: NodeView, row: int) -> Iterable[dict[str, Any]]:
    """Each resource of which too little is free."""
    for resource in _looked_at(look):
        needs = look.pod.requests[resource]
        column = view.column(resource)
        offered = 0 if column is None else int(view.allocatable[row, column])
        used = 0 if column is None else int(view.requested[row, column])
        if needs > offered - used:
            entry = {
                "resource": resource,
                "needs": needs,
                "used": used,
                "free": max(0, offered - used),
                "of": offered,
            }
            kept = _kept_for_resizes(view, row, resource)
            yield {**entry, "kept": kept} if kept else entry


def _kept_for_resizes(view: NodeView, row: int, resource: str) -> dict[str, int]:
    """Pod -> what is kept for its resize: what it wishes beyond what it has."""
    more = {other.key: other.usage.get(resource, 0) - other.held.get(resource, 0) for other in view.pods(row)}
    return {key: amount for key, amount in more.items() if amount > 0}


def _part(entry: dict[str, Any]) -> str:
    resource = entry["resource"]
    needs, free, of = amounts(resource, [entry[key] for key in ("needs", "free", "of")])
    if not entry["of"]:
        return f"needs {needs} {resource}, the node has none"
    too_small = ", too small even when empty" if entry["needs"] > entry["of"] else ""
    return f"needs {needs} {resource}, {free} free of {of}{too_small}{_kept_text(entry)}"


def _kept_text(entry: dict[str, Any]) -> str:
    kept: dict[str, int] = entry.get("kept", {})
    if not kept:
        over = entry["used"] - entry["of"]
        return f", {amount(entry['resource'], over)} more in use" if over > 0 else ""
    number = amount(entry["resource"], sum(kept.values()))
    return f", {number} kept for the resize of {names(list(kept))}"


def _range(resource: str, entries: Sequence[dict[str, Any]]) -> str:
    if resource == "pods":
        return _pods_range(entries)
    if len({(e["free"], e["of"]) for e in entries}) == 1:
        return _part(entries[0])
    lowest, highest = min(e["free"] for e in entries), max(e["free"] for e in entries)
    smallest, largest = min(e["of"] for e in entries), max(e["of"] for e in entries)
    texts = amounts(resource, [entries[0]["needs"], lowest, highest, smallest, largest])
    needs, free, of = texts[0], _span(*texts[1:3]), _span(*texts[3:])
    if not any(e["of"] for e in entries):
        return f"needs {needs} {resource}, the nodes have none"
    too_small = all(e["needs"] > e["of"] for e in entries)
    return (
        f"needs {needs} {resource}, {free} free of {of}{', too small even when empty' if too_small else ''}"
    )


def _pods_range(entries: Sequence[dict[str, Any]]) -> str:
    used, allowed = ([entry[key] for entry in entries] for key in ("used", "of"))
    limit = _span(str(min(allowed)), str(max(allowed)))
    if set(used) == {1}:
        return f"1 pod on it, {limit} allowed"
    return f"{_span(str(min(used)), str(max(used)))} pods on it, {limit} allowed"


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


# What-ifs


class _Roomier(NodeOverlay):
    """Every node allows one pod more than it has, if it allowed fewer."""

    @property
    def allowed_pods(self) -> Int64:
        return np.maximum(super().allowed_pods, self.pod_count + 1)

    @property
    def revision(self) -> Int64:
        return np.full(self.n_rows, -1, np.int64)


class _WithSlots:
    def __init__(self, nodes: NodeView) -> None:
        self._nodes = nodes

    def __call__(self, scenario: Scenario) -> Scenario:
        return Scenario(scenario.pod, _Roomier(scenario.view or self._nodes))


class _Less:
    def __init__(self, by: dict[str, int]) -> None:
        self._by = by

    def __call__(self, scenario: Scenario) -> Scenario:
        requests = dict(scenario.pod.requests)
        for resource, less in self._by.items():
            requests[resource] = max(requests.get(resource, 0) - less, 0)
        left = {resource: number for resource, number in requests.items() if number}
        return Scenario(asking_for(scenario.pod, left), scenario.view)


def _reductions(look: Look, resources: Sequence[str], rows: Rows) -> Iterable[Change]:
    """By the set of resources that a node is short of: as little less as helps one node, or half, or all."""
    lacks = np.stack([_lack(look, resource, rows) for resource in resources], axis=1) if resources else None
    if lacks is None:
        return
    asked = np.array([look.pod.requests[resource] for resource in resources], np.int64)
    is_possible = ((lacks > 0).any(axis=1)) & (lacks < asked).all(axis=1)
    _, which, counts = np.unique(lacks[is_possible] > 0, axis=0, return_inverse=True, return_counts=True)
    for index in np.argsort(-counts)[:_COMBINATIONS].tolist():
        of_set = lacks[is_possible][which.ravel() == index]
        for reduction in _steps(of_set, asked):
            by = {r: int(n) for r, n in zip(resources, reduction, strict=True) if n > 0}
            yield Change(_less_text(look, by), NAME, _Less(by), int(counts[index]))


def _steps(lacks: Int64, asked: Int64) -> list[tuple[int, ...]]:
    """Reductions for the first, the median and the last node, by the largest share that each needs."""
    order = np.argsort((lacks / asked).max(axis=1), kind="stable")
    ends = dict.fromkeys((0, order.size // 2, order.size - 1))
    steps = [tuple(lacks[order[: end + 1]].max(axis=0).tolist()) for end in ends]
    return list(dict.fromkeys(steps))


def _lack(look: Look, resource: str, rows: Rows) -> Int64:
    column = look.view.column(resource)
    needs = look.pod.requests[resource]
    if column is None:
        return np.full(rows.size, needs, np.int64)
    free: Int64 = look.view.allocatable[rows, column] - look.view.requested[rows, column]
    return np.maximum(needs - free, 0)


def _less_text(look: Look, by: dict[str, int]) -> str:
    parts = []
    for resource, less in by.items():
        needs = look.pod.requests[resource]
        left = amount(resource, needs - less)
        parts.append(
            f"{amount(resource, less)} less {resource} ({left} instead of {amount(resource, needs)})"
        )
    return f"with {' and '.join(parts)}"
