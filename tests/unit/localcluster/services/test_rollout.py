"""The arithmetic of rolling updates, also as a property of whole rollouts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.localcluster.controllers.rollout import Share, limits, next_scales, recreate, resolve


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [(3, 10, 3, 3), ("25%", 10, 3, 2), ("0%", 10, 0, 0), ("100%", 7, 7, 7), (None, 4, 1, 1)],
)
def test_resolve(value: int | str | None, total: int, up: int, down: int) -> None:
    assert resolve(value, total, default="25%", round_up=True) == up
    assert resolve(value, total, default="25%", round_up=False) == down


def test_limits_are_never_both_zero() -> None:
    assert limits({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}, 5) == (0, 1)


def test_recreate_waits_for_the_old_pods() -> None:
    new, old = Share("new", 0, 0), Share("old", 3, 3)
    assert recreate(new, [old], 3, 3) == {"old": 0}
    assert recreate(new, [Share("old", 0, 0)], 1, 3) == {}
    assert recreate(new, [Share("old", 0, 0)], 0, 3) == {"new": 3}
    assert recreate(Share("new", 3, 3), [], 0, 3) == {}


def test_unhealthy_old_replicas_go_first() -> None:
    scales = next_scales(Share("new", 3, 0), [Share("old", 10, 7)], 10, 3, 2)
    assert scales == {"old": 8}


@given(
    desired=st.integers(0, 20),
    start=st.integers(0, 20),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
    luck=st.lists(st.booleans(), max_size=200),
)
def test_any_rollout_ends_and_keeps_its_limits(
    desired: int, start: int, surge: int, unavailable: int, luck: list[bool]
) -> None:
    if not surge and not unavailable:
        unavailable = 1
    sizes = {"new": 0, "old": start}
    ready = {"new": 0, "old": start}
    luck = list(luck)
    for _ in range(300):
        new = Share("new", sizes["new"], ready["new"])
        old = [Share("old", sizes["old"], ready["old"])]
        before = ready["new"] + ready["old"]
        scales = next_scales(new, old, desired, surge, unavailable)
        for name, size in scales.items():
            assert size >= 0
            ready[name] = min(ready[name], size)
            sizes[name] = size
        assert sum(sizes.values()) <= max(desired + surge, start)
        assert ready["new"] + ready["old"] >= min(before, desired - unavailable)
        if not scales and ready["new"] == sizes["new"]:
            break
        if ready["new"] < sizes["new"] and (not luck or luck.pop()):
            ready["new"] += 1
    assert sizes == {"new": desired, "old": 0}
