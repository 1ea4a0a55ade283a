"""Times plugin methods from outside, so that a slow one is known by name.

The registry that the engine is given builds the same plugins with their methods wrapped; engine, profile
and plugins know nothing of it. `async def` methods are left alone: they are timed where they are run.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from pilotage.framework.plugin import Handle, PermitResult, PreFilterResult
from pilotage.framework.registry import POINT_METHODS, PluginFactory, Registry
from pilotage.framework.status import Code, Status

logger = logging.getLogger(__name__)

SLOW_SECONDS = 0.1
SAMPLE_EVERY = 10  # calls of one method; as upstream about a tenth of the work is measured

Observe = Callable[[str, str, str, float], None]
"""`observe(plugin, extension point, status, seconds)`"""

# Called for every comparison of the queue: timing them would cost more than they do.
_NOT_TIMED = frozenset({"queueSort"})
_STATUS_WORDS = {Code.UNRESOLVABLE: "UnschedulableAndUnresolvable"}


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
    code = status.code if isinstance(status, Status) else Code.SUCCESS
    return _STATUS_WORDS.get(code, code.name.capitalize())
