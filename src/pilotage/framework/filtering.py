"""PreFilter and Filter: which nodes are looked at and which of them can take the pod.

Laws: filters run in configured order on the rows that survived so far, so a node's reason is the first
failing plugin's. PreFilter: UnschedulableAndUnresolvable ends the phase, Unschedulable lets the others run
first, anything else that is not success is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.failures import NodeFailures, Origin
from pilotage.framework.guard import (
    PluginFailedError,
    answered,
    checked,
    failed,
    guarded,
    guarded_status,
    shown,
)
from pilotage.framework.noderef import RowRef
from pilotage.framework.plugin import FilterResult, PreFilterResult
from pilotage.framework.rowcache import (
    NEVER,
    Answers,
    Verdicts,
    settled,
    stale_rows,
)
from pilotage.framework.status import SUCCESS, Code, Status, unresolvable
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Bool, Int8, NodeView, Rows, UInt64

_REJECTIONS = [code for code in Code if code.is_rejection]


class Bound(NamedTuple):
    """A plugin at an extension point."""

    name: str
    plugin: Any  # implements the point's protocol
    weight: int = 1
    is_row_bound: bool = False  # answers may be kept per row


@dataclass(slots=True)
class PreFilterOutcome:
    """`node_names`: the only nodes worth looking at, None for all. `absent` is the status of the others."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None
    absent: Status = SUCCESS
    rejections: list[Status] = field(default_factory=list)  # each names its plugin
    narrowed_by: list[str] = field(default_factory=list)  # plugins that gave `node_names`


def run_pre_filters(
    plugins: Sequence[Bound], cycle: CycleState, pod: PodInfo, view: NodeView
) -> PreFilterOutcome:
    """Raises PluginFailedError."""
    outcome = PreFilterOutcome()
    for bound in plugins:
        if bound.name in cycle.skip_filter:  # takes no part in cycles of this kind
            continue
        result = _pre_filter(bound, cycle, pod, view)
        if result.status.is_skip:
            cycle.skip_filter.add(bound.name)
        elif result.status.is_rejection:
            _take_rejection(outcome, result.status.by(bound.name))
            if result.status.code is Code.UNRESOLVABLE:
                return outcome
        elif not result.status.is_success:
            raise PluginFailedError(failed(bound.name, "PreFilter", result.status.message))
        elif result.node_names is not None:
            _narrow(outcome, bound.name, result.node_names)
            if not outcome.node_names:
                return outcome
    return outcome


def _pre_filter(bound: Bound, cycle: CycleState, pod: PodInfo, view: NodeView) -> PreFilterResult:
    answer = guarded(bound.name, "PreFilter", bound.plugin.pre_filter, cycle, pod, view)
    if isinstance(answer, PreFilterResult):
        result = answered(bound.name, "PreFilter", answer, PreFilterResult)
        return replace(result, node_names=_names(bound.name, result.node_names))
    return PreFilterResult(SUCCESS if answer is None else checked(bound.name, "PreFilter", answer, Status))


def _names(plugin: str, names: object) -> frozenset[str] | None:
    """A node set as plugins give it: any collection of names. Raises PluginFailedError."""
    if names is None or isinstance(names, frozenset):
        return names
    if isinstance(names, Iterable) and not isinstance(names, str):
        return guarded(plugin, "PreFilter", frozenset, names)
    raise PluginFailedError(
        failed(plugin, "PreFilter", f"its node set is {shown(names)}, not a set of names")
    )


def _take_rejection(outcome: PreFilterOutcome, status: Status) -> None:
    """The phase fails with an unresolvable status if there is one, else with the last rejection."""
    outcome.rejections.append(status)
    outcome.status = outcome.absent = status


def _narrow(outcome: PreFilterOutcome, plugin: str, names: frozenset[str]) -> None:
    known = outcome.node_names
    outcome.node_names = names if known is None else known & names
    outcome.narrowed_by.append(plugin)
    several = f"plugin(s) [{' '.join(outcome.narrowed_by)}]"
    if outcome.node_names:
        outcome.absent = unresolvable(f"node(s) didn't satisfy {several}")
        return
    text = f"plugin {plugin}" if len(outcome.narrowed_by) == 1 else f"{several} simultaneously"
    outcome.status = outcome.absent = unresolvable(f"node(s) didn't satisfy {text}")


def run_filters(
    plugins: Sequence[Bound],
    cycle: CycleState,
    pod: PodInfo,
    view: NodeView,
    rows: Rows,
    failures: NodeFailures,
    kept: Answers | None = None,
) -> Rows:
    """The rows that passed all filters, in their order; the others are recorded. Raises PluginFailedError.

    `kept`: answers of the leading row-bound filters, used and brought up to date.
    """
    rows = _without_defects(view, rows, failures)
    if kept is not None:
        leading = list(takewhile(lambda bound: bound.is_row_bound, plugins))
        rows = _filter_kept(leading, cycle, pod, view, rows, failures, kept.verdicts)
        plugins = plugins[len(leading) :]
    run: Callable[[Bound, CycleState, PodInfo, NodeView, Rows, NodeFailures], Rows]
    for bound in plugins:
        if not rows.size:
            break
        if bound.name not in cycle.skip_filter:
            run = _filter_rows if hasattr(bound.plugin, "filter_nodes") else _filter_each
            rows = run(bound, cycle, pod, view, rows, failures)
    return rows


def _without_defects(view: NodeView, rows: Rows, failures: NodeFailures) -> Rows:
    if not view.has_defects:
        return rows
    is_defective = view.defective[rows]
    failures.record_defects(rows[is_defective])
    return rows[~is_defective]


def _filter_kept(
    plugins: Sequence[Bound],
    cycle: CycleState,
    pod: PodInfo,
    view: NodeView,
    rows: Rows,
    failures: NodeFailures,
    kept: Verdicts,
) -> Rows:
    stale = stale_rows(kept.revision, view, rows)
    if stale.size:
        _refresh(plugins, cycle, pod, view, stale, kept)
    codes = kept.codes[rows]
    if not codes.any():
        return rows
    is_out = codes != Code.SUCCESS
    out = rows[is_out]
    origins = kept.origin[out]
    for index, bound in enumerate(plugins):
        of = out[origins == index]
        if of.size:
            origin = Origin(bound.name, bound.plugin, cycle, view)
            failures.record_bits(origin, of, kept.codes[of], kept.bits[of])
    left: Rows = rows[~is_out]
    return left


def _refresh(
    plugins: Sequence[Bound], cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows, kept: Verdicts
) -> None:
    """Asks the filters about rows that changed. What was kept stays void when one of them fails."""
    kept.revision[rows] = NEVER
    kept.codes[rows] = Code.SUCCESS
    left = rows
    for index, bound in enumerate(plugins):
        if bound.name in cycle.skip_filter or not left.size:
            continue
        rejected = _ask(bound, cycle, pod, view, left)
        if rejected is not None:
            is_out, codes, bits = rejected
            out = left[is_out]
            kept.codes[out], kept.bits[out], kept.origin[out] = codes, bits, index
            left = left[~is_out]
    kept.revision[rows] = settled(view, rows)


def _filter_rows(
    bound: Bound, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows, failures: NodeFailures
) -> Rows:
    rejected = _ask(bound, cycle, pod, view, rows)
    if rejected is None:
        return rows
    is_out, codes, bits = rejected
    failures.record_bits(Origin(bound.name, bound.plugin, cycle, view), rows[is_out], codes, bits)
    left: Rows = rows[~is_out]
    return left


class _Rejected(NamedTuple):
    is_out: Bool  # aligned with the rows that were asked
    codes: Int8  # of those that are out
    bits: UInt64


def _ask(bound: Bound, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> _Rejected | None:
    """The rows that a vector filter rejects; None when all pass."""
    answer = guarded(bound.name, "Filter", bound.plugin.filter_nodes, cycle, pod, view, rows)
    result = checked(bound.name, "Filter", answer, FilterResult)
    codes = _aligned(bound.name, "codes", result.codes, rows)
    if not codes.any():
        return None
    reasons = _aligned(bound.name, "reasons", result.reasons, rows)
    is_out = codes != Code.SUCCESS
    out, codes, bits = rows[is_out], codes[is_out], reasons[is_out]
    for index in np.flatnonzero(~np.isin(codes, _REJECTIONS)):
        origin = Origin(bound.name, bound.plugin, cycle, view)
        status = origin.status(pod, int(out[index]), Code.ERROR, int(bits[index]))
        raise PluginFailedError(failed(bound.name, "Filter", status.message))
    return _Rejected(is_out, codes, bits)


def _aligned(plugin: str, part: str, values: object, rows: Rows) -> Any:
    """An array of whole numbers, one per row that was asked. Raises PluginFailedError."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iub":
        raise PluginFailedError(failed(plugin, "Filter", f"{part} are {shown(values)}, not whole numbers"))
    if values.shape != rows.shape:
        detail = f"{part} of shape {values.shape} for {rows.size} nodes"
        raise PluginFailedError(failed(plugin, "Filter", detail))
    return values


def _filter_each(
    bound: Bound, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows, failures: NodeFailures
) -> Rows:
    keep = np.ones(rows.size, np.bool_)
    for index, row in enumerate(rows.tolist()):
        status = guarded_status(bound.name, "Filter", bound.plugin.filter, cycle, pod, RowRef(view, row))
        if status.is_success:
            continue
        if not status.is_rejection:
            raise PluginFailedError(failed(bound.name, "Filter", status.message))
        failures.record(row, status.by(bound.name))
        keep[index] = False
    return rows if keep.all() else rows[keep]
