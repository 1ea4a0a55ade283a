"""The timed registry: the same plugins, known by name when they are slow."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pilotage.framework.plugin import Plugin, PreFilterResult
from pilotage.framework.registry import Registry, RegistryError
from pilotage.framework.status import SUCCESS, Status, unresolvable, unschedulable
from pilotage.runtime import timing
from pilotage.runtime.timing import TimedRegistry


class Both(Plugin):
    def pre_filter(self, _cycle: object, _pod: object, _view: object) -> PreFilterResult:
        return PreFilterResult(unresolvable("no"))

    def filter(self, _cycle: object, _pod: object, node: object) -> Status:
        return SUCCESS if node else unschedulable("no")

    async def pre_bind(self, _cycle: object, _pod: object, _node: str) -> Status:
        return SUCCESS


class Slotted:
    __slots__ = ("name",)

    def __init__(self, _args: object, _handle: object) -> None:
        self.name = "Slotted"

    def filter(self, _cycle: object, _pod: object, _node: object) -> Status:
        return SUCCESS


@pytest.fixture
def seen() -> list[tuple[str, str, str]]:
    return []


@pytest.fixture
def registry(seen: list[tuple[str, str, str]]) -> Registry:
    timed = TimedRegistry(
        Registry(), lambda plugin, point, status, _seconds: seen.append((plugin, point, status))
    )
    timed.register("Both", Both)
    timed.register("Slotted", Slotted)
    return timed


def test_it_has_what_the_inner_one_has(registry: Registry) -> None:
    assert registry.names() == ("Both", "Slotted")
    assert "Both" in registry
    assert "Other" not in registry
    assert registry.points("Slotted") == {"filter"}
    with pytest.raises(RegistryError):
        registry.build("Other")


def test_calls_pass_through_and_every_tenth_is_told(
    registry: Registry, seen: list[tuple[str, str, str]]
) -> None:
    plugin: Any = registry.build("Both", {"a": 1})
    assert plugin.args == {"a": 1}
    assert plugin.pre_filter(None, None, None).status.reasons == ("no",)
    for number in range(20):
        assert plugin.filter(None, None, number % 10).is_success is bool(number % 10)
    assert (
        seen
        == [("Both", "PreFilter", "UnschedulableAndUnresolvable")] + [("Both", "Filter", "Unschedulable")] * 2
    )


def test_async_methods_and_slots_are_left_alone(registry: Registry) -> None:
    both: Any = registry.build("Both")
    assert both.pre_bind.__func__ is Both.pre_bind
    slotted: Any = registry.build("Slotted")
    assert slotted.filter(None, None, None) is SUCCESS


def test_what_a_plugin_raises_comes_through(registry: Registry) -> None:
    plugin: Any = registry.build("Both")
    with pytest.raises(TypeError):
        plugin.filter()


def test_a_slow_call_is_logged_by_name(
    registry: Registry, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin: Any = registry.build("Both")
    ticks = iter([1.0, 1.25, 2.0, 2.05])
    monkeypatch.setattr(timing, "perf_counter", lambda: next(ticks))
    with caplog.at_level(logging.WARNING, logger="pilotage"):
        plugin.filter(None, None, 1)
        plugin.filter(None, None, 1)
    assert [r.getMessage() for r in caplog.records] == ["plugin Both took 0.250 s at Filter"]
