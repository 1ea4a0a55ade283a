"""Fixtures over the Harness. In a conftest: `pytest_plugins = ["pilotage.testing.pytest_plugin"]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from pilotage.testing.harness import Harness


class MakeHarness(Protocol):
    """The arguments of `Harness`; what is made is started, and checked and ended after the test."""

    def __call__(self, **options: Any) -> Harness: ...


@pytest.fixture
def make_harness() -> Iterator[MakeHarness]:
    """Any number of started harnesses; their invariants are checked when the test is over."""
    made: list[Harness] = []

    def make(**options: Any) -> Harness:
        harness = Harness(**options)
        made.append(harness)
        return harness.start()

    yield make
    try:
        for harness in made:
            harness.check_invariants()
    finally:
        for harness in made:
            harness.close()


@pytest.fixture
def harness(make_harness: MakeHarness) -> Harness:
    """A started harness with seed 0 and default settings."""
    return make_harness()
