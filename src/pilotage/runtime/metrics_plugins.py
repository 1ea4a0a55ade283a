"""Figures of plugins: what `runtime.timing` saw from outside, and the points that bindings waited at."""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.runtime.figures import Counter, Figures, Histogram, Labels, exponential
from pilotage.runtime.metrics_attempts import POINT_SECONDS
from pilotage.scheduling.messages import BindingEnded

_P = "scheduler_"
_PLUGIN_SECONDS = exponential(0.00001, 1.5, 20)
_VOLUMES = "VolumeBinding"
_STAGES = {"PreFilter": "predicate", "Filter": "predicate", "Reserve": "assume", "PreBind": "bind"}


class PluginFigures(Figures):
    def __init__(self) -> None:
        self.points = Histogram(
            f"{_P}framework_extension_point_duration_seconds",
            "All plugins of an extension point, for one pod.",
            POINT_SECONDS,
            "extension_point",
            "status",
            "profile",
        )
        self.plugins = Histogram(
            f"{_P}plugin_execution_duration_seconds",
            "One plugin at one extension point; about a tenth of the calls is measured.",
            _PLUGIN_SECONDS,
            "plugin",
            "extension_point",
            "status",
        )
        self.evaluations = Counter(
            f"{_P}plugin_evaluation",
            "Pods looked at by a plugin, at PreFilter, Filter, PreScore and Score.",
            "plugin",
            "extension_point",
            "profile",
        )
        self.hints = Histogram(
            f"{_P}queueing_hint_execution_duration_seconds",
            "Queueing hints, by what they answered.",
            _PLUGIN_SECONDS,
            "plugin",
            "event",
            "hint",
        )
        self.volume_errors = Counter(
            f"{_P}volume_scheduling_stage_error", "Errors of volume binding, by stage.", "operation"
        )

    def plugin_ran(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self.plugins.observe(seconds, plugin, point, status)

    def point_ran(self, profile: str, point: str, status: str, seconds: float) -> None:
        self.points.observe(seconds, point, status, profile)

    def evaluated(self, labels: Iterable[Labels]) -> None:
        """One more for each of (plugin, extension point, profile)."""
        values = self.evaluations.values
        for one in labels:
            values[one] = values.get(one, 0.0) + 1.0

    def hint_ran(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        self.hints.observe(seconds, plugin, event, hint)

    def failed(self, plugin: str, point: str) -> None:
        """A plugin ended a pod's attempt with an error."""
        if plugin == _VOLUMES and point in _STAGES:
            self.volume_errors.add(_STAGES[point])

    def binding(self, ended: BindingEnded) -> None:
        for point, status, seconds in ended.points:
            self.points.observe(seconds, point, status, ended.profile)
