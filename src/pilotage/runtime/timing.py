"""Times plugins, extension points and hints from outside, so that a slow one is known by name.

The registry that the engine is given builds the same plugins with their methods wrapped, and the runners of a
profile are wrapped once it is built; engine, profile and plugins know nothing of it, and where nobody asks,
it costs nothing. `async def` methods are left alone: they are timed where they are run.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, Protocol

from pilotage.framework.asking import Asking
from pilotage.framework.cycle import CycleState
from pilotage.framework.events import HintFn
from pilotage.framework.guard import PluginFailedError
from pilotage.framework.plugin import Handle, PermitResult, PreFilterResult
from pilotage.framework.profile import Profile
from pilotage.framework.registry import POINT_METHODS, PluginFactory, Registry
from pilotage.framework.status import SUCCESS, Code, Status
from pilotage.scheduling.queue_hints import AskHint, HintResult, Occurrence, ask_hint
from pilotage.scheduling.queue_record import Record

logger = logging.getLogger(__name__)

SLOW_SECONDS = 0.1
SAMPLE_EVERY = 10  # calls of one method; as upstream about a tenth of the work is measured

Observe = Callable[[str, str, str, float], None]
"""`observe(plugin, extension point, status, seconds)`"""

# Called for every comparison of the queue: timing them would cost more than they do.
_NOT_TIMED = frozenset({"queueSort"})


class TimedRegistry(Registry):
    """The same names, points and plugins as `inner`."""

    def __init__(self, inner: Registry, observe: Observe) -> None:
        super().__init__()
        self._inner = inner
        self._observe = observe

    def register(self, name: str, factory: PluginFactory, points: Iterable[str] | None = None) -> None:
        self._inner.register(name, factory, points)

    def build(self, name: str, args: Any = None, handle: Handle | None = None) -> object:
        plugin = self._inner.build(name, args, handle)
        for point, methods in POINT_METHODS.items():
            for method in () if point in _NOT_TIMED else methods:
                _wrap(plugin, name, point, method, self._observe)
        return plugin

    def points(self, name: str) -> frozenset[str]:
        return self._inner.points(name)

    def args_type(self, name: str) -> type[Any] | None:
        return self._inner.args_type(name)

    def names(self) -> tuple[str, ...]:
        return self._inner.names()

    def __contains__(self, name: object) -> bool:
        return name in self._inner


def _wrap(plugin: object, name: str, point: str, method: str, observe: Observe) -> None:
    function = getattr(plugin, method, None)
    if not callable(function) or inspect.iscoroutinefunction(function):
        return
    # A plugin with slots keeps its method, untimed.
    with contextlib.suppress(AttributeError):
        setattr(plugin, method, _timed(function, name, point[0].upper() + point[1:], observe))


def _timed(function: Callable[..., Any], name: str, point: str, observe: Observe) -> Callable[..., Any]:
    calls = 0

    def timed(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        start = perf_counter()
        result = function(*args, **kwargs)
        seconds = perf_counter() - start
        if seconds > SLOW_SECONDS:
            logger.warning("plugin %s took %.3f s at %s", name, seconds, point)
        if calls % SAMPLE_EVERY == 1 and not inspect.isawaitable(result):
            observe(name, point, _status_word(result), seconds)
        return result

    return timed


def _status_word(result: object) -> str:
    status = result.status if isinstance(result, (PermitResult, PreFilterResult)) else result
    return status.code.word if isinstance(status, Status) else Code.SUCCESS.word


# Extension points

Labels = tuple[str, ...]  # plugin, extension point, profile
Labelled = tuple[str, Labels]  # by name of the plugin


class Watcher(Protocol):
    """Who wants to know; see `runtime.metrics_plugins`."""

    def point_ran(self, profile: str, point: str, status: str, seconds: float) -> None: ...

    def evaluated(self, labels: Iterable[Labels]) -> None: ...

    def failed(self, plugin: str, point: str) -> None: ...


_RUNNERS = {
    "run_pre_filter": "PreFilter",
    "run_filters": "Filter",
    "run_pre_score": "PreScore",
    "run_scores": "Score",
    "run_reserve": "Reserve",
    "run_unreserve": "Unreserve",
    "run_pre_bind_pre_flight": "PreBindPreFlight",
}
_EVALUATED = ("PreFilter", "Filter", "PreScore", "Score")


def time_points(profile: Profile, watcher: Watcher) -> None:
    """Wraps the runners of one profile; once per profile."""
    for method, point in _RUNNERS.items():
        run = getattr(profile, method)
        setattr(profile, method, _timed_point(run, profile, point, watcher))
    post_filtering = "post_filtering"
    setattr(profile, post_filtering, _timed_asking(profile.post_filtering, profile.name, watcher))


def _timed_asking(
    run: Callable[..., Asking[Any]], profile: str, watcher: Watcher
) -> Callable[..., Asking[Any]]:
    """PostFilter may ask outside: the time of the answers counts."""

    def timed(*args: Any) -> Asking[Any]:
        start = perf_counter()
        result = yield from run(*args)
        watcher.point_ran(profile, "PostFilter", _status_of(result).code.word, perf_counter() - start)
        return result

    return timed


def _timed_point(
    run: Callable[..., Any], profile: Profile, point: str, watcher: Watcher
) -> Callable[..., Any]:
    names = [bound.name for bound in profile.at(point[0].lower() + point[1:])] if point in _EVALUATED else []
    labels = [(name, (name, point, profile.name)) for name in names]
    skips = "skip_filter" if point in ("PreFilter", "Filter") else "skip_score"

    def timed(cycle: CycleState, *args: Any, **kwargs: Any) -> Any:
        start = perf_counter()
        status = SUCCESS
        try:
            result = run(cycle, *args, **kwargs)
            status = _status_of(result)
        except PluginFailedError as fault:
            status = fault.status
            raise
        finally:
            watcher.point_ran(profile.name, point, status.code.word, perf_counter() - start)
            if status.code is Code.ERROR:
                watcher.failed(status.plugin, point)
            if labels:
                watcher.evaluated(_evaluated(labels, getattr(cycle, skips), status))
        return result

    return timed


def _status_of(result: object) -> Status:
    status = result if isinstance(result, Status) else getattr(result, "status", None)
    return status if isinstance(status, Status) else SUCCESS


def _evaluated(labels: Sequence[Labelled], skipped: set[str], status: Status) -> list[Labels]:
    """The plugins that were not skipped, up to the one that ended the phase."""
    if status.code in (Code.ERROR, Code.UNRESOLVABLE):
        names = [name for name, _ in labels]
        labels = labels[: names.index(status.plugin) + 1] if status.plugin in names else labels
    return [label for name, label in labels if name not in skipped]


# Queueing hints


def time_hints(observe: Observe) -> AskHint:
    """`observe(plugin, event, answer, seconds)`"""

    def timed(plugin: str, hint: HintFn | None, record: Record, occurrence: Occurrence) -> HintResult:
        start = perf_counter()
        answer = ask_hint(plugin, hint, record, occurrence)
        observe(plugin, str(occurrence.event), answer.value, perf_counter() - start)
        return answer

    return timed
