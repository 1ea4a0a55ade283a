"""One scheduler profile: its plugin instances and a runner for every extension point.

Laws: one instance per plugin; at each point the configured order; a plugin that is listed at a point which
it does not implement is left out there (multiPoint lists name every plugin at every point). Runners never
raise what a plugin raises: they answer with an error status naming plugin and point, or, where they return
rows, with `PluginFailedError`, which carries that status.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, NamedTuple

from pilotage.framework.asking import Asking, with_nobody_to_ask
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import (
    TAINT_MAY_HAVE_HIDDEN,
    WILDCARD,
    Action,
    EventRegistration,
    Resource,
)
from pilotage.framework.failures import NodeFailures
from pilotage.framework.filtering import Bound, PreFilterOutcome, run_filters, run_pre_filters
from pilotage.framework.guard import (
    PluginFailedError,
    answered,
    checked,
    failed,
    guarded,
    guarded_status,
    raised,
)
from pilotage.framework.plugin import Handle, PostFilterResult, QueuedPod, WhatIfPlugin
from pilotage.framework.registry import Registry, RegistryError, implements
from pilotage.framework.rowcache import Answers, RowCache, is_row_bound
from pilotage.framework.scoring import Scores, run_pre_scores, run_scores
from pilotage.framework.settings import EXTENSION_POINTS, PluginRef, ProfileSettings
from pilotage.framework.status import SKIP, SUCCESS, Code, Status
from pilotage.framework.trials import TrialPlugin
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView, Rows

_KEPT = "framework/row answers"
_REJECTING_POINTS = ("preEnqueue", "preFilter", "filter", "reserve", "permit")


class ProfileError(ValueError):
    """A profile that cannot be built; the text names profile, extension point and plugin."""


class _LookedUp(NamedTuple):
    answers: Answers | None


class Profile:
    """Built once from settings; holds no state of a pod, only answers that hold for all pods like it."""

    def __init__(self, settings: ProfileSettings, registry: Registry, handle: Handle | None = None) -> None:
        """Raises ProfileError."""
        self.name = settings.scheduler_name
        self.settings = settings
        self.plugins: dict[str, Any] = {}
        self._cache = RowCache()
        self._points = {
            point: self._bind_point(point, settings.points.get(point, ()), registry, handle)
            for point in EXTENSION_POINTS
        }
        self._check_single("queueSort")
        if not self._points["bind"]:
            raise ProfileError(f'profile "{self.name}": no plugin is enabled at bind')
        self._no_resizes = frozenset(
            name for name, plugin in self.plugins.items() if not takes_part_in_resizes(plugin)
        )
        self._what_if = tuple(b for b in self._points["preFilter"] if isinstance(b.plugin, WhatIfPlugin))
        self._leading = tuple(takewhile(_looks_at_rows, self._points["filter"]))
        self.queue_sort: Any = self._points["queueSort"][0].plugin
        # Instances in order, for the points whose plugins may be async and are run by the engine.
        self.pre_enqueue = self._instances("preEnqueue")
        self.post_filter = self._instances("postFilter")
        self.reserve = self._instances("reserve")
        self.permit = self._instances("permit")
        self.pre_bind = self._instances("preBind")
        self.bind = self._instances("bind")
        self.post_bind = self._instances("postBind")
        for plugin in self.plugins.values():
            if isinstance(plugin, TrialPlugin):
                plugin.use_trials(self)

    def _bind_point(
        self, point: str, refs: Iterable[PluginRef], registry: Registry, handle: Handle | None
    ) -> tuple[Bound, ...]:
        bound: list[Bound] = []
        for ref in refs:
            if any(ref.name == known.name for known in bound):
                raise ProfileError(f'profile "{self.name}": plugin "{ref.name}" is enabled twice at {point}')
            plugin = self._instance(point, ref.name, registry, handle)
            if implements(plugin, point):
                bound.append(Bound(ref.name, plugin, ref.weight or 1, is_row_bound(plugin, point)))
        return tuple(bound)

    def _instance(self, point: str, name: str, registry: Registry, handle: Handle | None) -> Any:
        if name not in self.plugins:
            try:
                plugin = registry.build(name, self.settings.args.get(name), handle)
                self.plugins[name] = _named(plugin, name)
            except RegistryError as exc:
                raise ProfileError(f'profile "{self.name}", {point}: {exc}') from None
            except Exception as exc:  # a plugin's constructor is foreign code; the user must learn which one
                detail = f"{type(exc).__name__}: {exc}"
                raise ProfileError(f'profile "{self.name}", {point}: plugin "{name}": {detail}') from exc
        return self.plugins[name]

    def _check_single(self, point: str) -> None:
        names = [bound.name for bound in self._points[point]]
        if len(names) != 1:
            found = ", ".join(names) or "none"
            raise ProfileError(
                f'profile "{self.name}": exactly one plugin at {point} is needed, found {found}'
            )

    def _instances(self, point: str) -> tuple[Any, ...]:
        return tuple(bound.plugin for bound in self._points[point])

    def at(self, point: str) -> Sequence[Bound]:
        """Plugins that run at an extension point, in order."""
        return self._points[point]

    def registrations(self) -> Mapping[str, tuple[EventRegistration, ...]]:
        """Events that may help a pod which a plugin rejected, for every plugin that can reject one.

        A plugin that registers nothing is woken by everything. One that waits for new nodes is also told of
        taint changes: the taint filter may have hidden a node from it.
        """
        rejecting = dict.fromkeys(b.name for point in _REJECTING_POINTS for b in self._points[point])
        return {name: _registrations(self.plugins[name]) for name in rejecting}

    # Queue

    def sort_key(self, queued: QueuedPod) -> Any:
        """Raises what the plugin raises."""
        return self.queue_sort.sort_key(queued)

    def run_pre_enqueue(self, pod: PodInfo, first: str = "") -> Status:
        """Success, or why the pod is gated and by whom. `first`: the plugin that gated it last time."""
        plugins = sorted(self._points["preEnqueue"], key=lambda bound: bound.name != first)
        for bound in plugins:
            try:
                status = guarded_status(bound.name, "PreEnqueue", bound.plugin.pre_enqueue, pod)
            except PluginFailedError as exc:
                return exc.status
            if not status.is_success:
                return status.by(bound.name)
        return SUCCESS

    # Filtering

    def begin_cycle(self, pod: PodInfo) -> CycleState:
        """The state of a new cycle. Of a bound pod (a resize) only plugins that take part in those see it."""
        cycle = CycleState()
        if pod.is_bound:
            cycle.skip_filter.update(self._no_resizes)
        return cycle

    def resize_rejectors(self) -> frozenset[str]:
        """Plugins that may reject a resize; none: this profile does not care for resizes."""
        names = {bound.name for point in ("preFilter", "filter") for bound in self._points[point]}
        return frozenset(names - self._no_resizes)

    def run_pre_filter(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> PreFilterOutcome:
        """A plugin that fails makes the outcome's status an error."""
        try:
            return run_pre_filters(self._points["preFilter"], cycle, pod, view)
        except PluginFailedError as exc:
            return PreFilterOutcome(exc.status)

    def run_filters(
        self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows, failures: NodeFailures
    ) -> Rows:
        """The rows that passed; rejections go to `failures`. Raises PluginFailedError."""
        kept = self._kept(cycle, pod, view)
        return run_filters(self._points["filter"], cycle, pod, view, rows, failures, kept)

    def run_trial(
        self,
        cycle: CycleState,
        pod: PodInfo,
        view: NodeView,
        rows: Rows,
        failures: NodeFailures,
        leading_only: bool = False,
    ) -> Rows:
        """As `run_filters` on a what-if view. `leading_only`: only the first filters, as far as each depends
        on the row alone. Raises PluginFailedError."""
        filters = self._leading if leading_only else self._points["filter"]
        return run_filters(filters, cycle, pod, view, rows, failures)

    def is_row_bound(self, cycle: CycleState) -> bool:
        """Whether answers in this cycle depend on each row alone, so that rows may change together."""
        skipped = cycle.skip_filter
        others = (*self._what_if, *(b for b in self._points["filter"] if not b.is_row_bound))
        return all(bound.name in skipped for bound in others)

    def run_add_pod(
        self, cycle: CycleState, pod: PodInfo, other: PodInfo, row: int, view: NodeView
    ) -> Status:
        """Tells the plugins that `other` now is on `row` of the what-if `view`."""
        return self._run_what_if("add_pod", "AddPod", cycle, pod, other, row, view)

    def run_remove_pod(
        self, cycle: CycleState, pod: PodInfo, other: PodInfo, row: int, view: NodeView
    ) -> Status:
        """Tells the plugins that `other` is no longer on `row` of the what-if `view`."""
        return self._run_what_if("remove_pod", "RemovePod", cycle, pod, other, row, view)

    def _run_what_if(
        self,
        method: str,
        point: str,
        cycle: CycleState,
        pod: PodInfo,
        other: PodInfo,
        row: int,
        view: NodeView,
    ) -> Status:
        for bound in self._what_if:
            if bound.name in cycle.skip_filter:
                continue
            try:
                call = getattr(bound.plugin, method)
                status = guarded_status(bound.name, point, call, cycle, pod, other, row, view)
            except PluginFailedError as exc:
                return exc.status
            if not status.is_success:
                return failed(bound.name, point, status.message)
        return SUCCESS

    def run_post_filter(
        self, cycle: CycleState, pod: PodInfo, view: NodeView, failures: NodeFailures
    ) -> PostFilterResult:
        """As `post_filtering` where nobody outside can be asked."""
        return with_nobody_to_ask(self.post_filtering(cycle, pod, view, failures))

    def post_filtering(
        self, cycle: CycleState, pod: PodInfo, view: NodeView, failures: NodeFailures
    ) -> Asking[PostFilterResult]:
        """Plugins run until one ends it; the reasons of those that found nothing are put together.

        An error keeps its own text: users read it behind the reasons why no node was found.
        """
        reasons: list[str] = []
        rejected_by = ""
        nominated: str | None = None
        for bound in self._points["postFilter"]:
            if pod.is_bound and bound.name in self._no_resizes:
                continue
            try:
                call = bound.plugin.post_filter
                answer = guarded(bound.name, "PostFilter", call, cycle, pod, view, failures)
                if isinstance(answer, Generator):
                    answer = yield from _asking(bound.name, answer)
                result = answered(bound.name, "PostFilter", answer, PostFilterResult)
                checked(bound.name, "PostFilter", result.nominated_node or "", str)
            except PluginFailedError as exc:
                return PostFilterResult(exc.status)
            if not result.status.is_rejection or result.status.code is Code.UNRESOLVABLE:
                return replace(result, status=result.status.by(bound.name))
            reasons += result.status.reasons
            rejected_by = rejected_by or bound.name
            nominated = result.nominated_node if result.nominated_node is not None else nominated
        return PostFilterResult(Status(Code.UNSCHEDULABLE, tuple(reasons), rejected_by), nominated)

    # Scoring

    def run_pre_score(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> None:
        """Raises PluginFailedError."""
        run_pre_scores(self._points["preScore"], cycle, pod, view, rows)

    def run_scores(self, cycle: CycleState, pod: PodInfo, view: NodeView, rows: Rows) -> Scores:
        """Raises PluginFailedError."""
        kept = self._kept(cycle, pod, view)
        return run_scores(self._points["score"], cycle, pod, view, rows, kept)

    def _kept(self, cycle: CycleState, pod: PodInfo, view: NodeView) -> Answers | None:
        """Answers kept for pods like this one, looked up once per cycle."""
        looked_up = cycle.get(_KEPT)
        if not isinstance(looked_up, _LookedUp):
            looked_up = _LookedUp(self._cache.answers(view, pod))
            cycle.write(_KEPT, looked_up)
        answers = looked_up.answers
        return answers if answers is not None and answers.n_rows == view.n_rows else None

    # Binding

    def run_reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Stops at the first failure; the caller then runs `run_unreserve`."""
        for bound in self._points["reserve"]:
            try:
                status = guarded_status(bound.name, "Reserve", bound.plugin.reserve, cycle, pod, node_name)
            except PluginFailedError as exc:
                return exc.status
            if status.is_rejection:
                return status.by(bound.name)
            if not status.is_success:
                return failed(bound.name, "Reserve", status.message)
        return SUCCESS

    def run_unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, ...]:
        """All Reserve plugins in reverse order, whatever fails; returns the failures, for the log."""
        failures: list[Status] = []
        for bound in reversed(self._points["reserve"]):
            unreserve = getattr(bound.plugin, "unreserve", None)
            if unreserve is None:
                continue
            try:
                guarded(bound.name, "Unreserve", unreserve, cycle, pod, node_name)
            except PluginFailedError as exc:
                failures.append(exc.status)
        return tuple(failures)

    def run_pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Skip when no PreBind plugin has work for this pod; those that have none are noted in `cycle`."""
        has_work = False
        for bound in self._points["preBind"]:
            pre_flight = getattr(bound.plugin, "pre_bind_pre_flight", None)
            if pre_flight is None:
                has_work = True
                continue
            try:
                status = guarded_status(bound.name, "PreBindPreFlight", pre_flight, cycle, pod, node_name)
            except PluginFailedError as exc:
                return exc.status
            if status.is_skip:
                cycle.skip_pre_bind.add(bound.name)
            elif not status.is_success:
                return failed(bound.name, "PreBindPreFlight", status.message)
            else:
                has_work = True
        return SUCCESS if has_work else SKIP


def _asking(plugin: str, asking: Asking[Any]) -> Asking[Any]:
    """A PostFilter plugin that asks, with whatever it raises as PluginFailedError."""
    try:
        return (yield from asking)
    except Exception as exc:  # plugins are foreign code: any of theirs fails one attempt, never the scheduler
        raise PluginFailedError(raised(plugin, "PostFilter", exc)) from exc


def takes_part_in_resizes(plugin: object) -> bool:
    """What the plugin declares; plugins that know nothing of resizes stay out of them."""
    return getattr(plugin, "takes_part_in_resizes", False) is True


def _looks_at_rows(bound: Bound) -> bool:
    return bound.is_row_bound and not isinstance(bound.plugin, WhatIfPlugin)


def _named(plugin: Any, name: str) -> Any:
    """One class may serve under several names; the instance carries the one it was configured by."""
    if getattr(plugin, "name", None) != name:
        plugin.name = name
    return plugin


def _registrations(plugin: Any) -> tuple[EventRegistration, ...]:
    declare = getattr(plugin, "events_to_register", None)
    registrations = tuple(declare()) if declare is not None else ()
    if not registrations:
        return (EventRegistration(WILDCARD),)
    node = [r.event.action for r in registrations if r.event.resource is Resource.NODE]
    waits_for_nodes = any(action & Action.ADD for action in node)
    if waits_for_nodes and not any(action & Action.UPDATE_NODE_TAINT for action in node):
        return (*registrations, TAINT_MAY_HAVE_HIDDEN)
    return registrations
