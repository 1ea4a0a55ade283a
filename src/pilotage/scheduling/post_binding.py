"""PostBind: plugins are told of a bound pod. Nobody waits for them; what they fail at is logged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any

from pilotage.framework.guard import PluginFailedError, guarded
from pilotage.scheduling.bindingrecord import Binding
from pilotage.scheduling.enginestate import EngineState
from pilotage.scheduling.messages import StepFinished


class PostBinds:
    def __init__(self, state: EngineState) -> None:
        self._state = state
        self._steps: dict[int, str] = {}  # -> key of the pod, of the steps that run

    def start(self, binding: Binding) -> None:
        for plugin in binding.profile.post_bind:
            try:
                self._start(binding, plugin)
            except PluginFailedError as fault:
                self._state.outbox.log("error", f"{binding.pod.key}: {fault.status.message}")

    def _start(self, binding: Binding, plugin: Any) -> None:
        start: Callable[[], Awaitable[Any]]
        start = partial(plugin.post_bind, binding.cycle, binding.pod, binding.node)
        if not iscoroutinefunction(plugin.post_bind):
            result = guarded(plugin.name, "PostBind", start)
            if not isawaitable(result):
                return
            start = partial(_same, result)
        step = self._state.outbox.run_step(plugin.name, "PostBind", binding.uid, start)
        self._steps[step] = binding.pod.key

    def step_finished(self, event: StepFinished) -> None:
        key = self._steps.pop(event.step, None)
        if key is not None and event.error:
            self._state.outbox.log("error", f"PostBind of {key} failed: {event.error}")


def _same(awaitable: Awaitable[Any]) -> Awaitable[Any]:
    return awaitable
