"""The differential property, in shards, so that several test files share the work of the workers.

Hypothesis draws a seed and the sizes; the cluster comes from a plain seeded generator.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reference.differential import Sizes, run_case

SHARDS = 4
SMALL_CASES = 490  # in each shard; with the large ones 2,000 in all
LARGE_CASES = 10

SMALL = st.integers(0, 20).flatmap(
    lambda nodes: st.builds(Sizes, st.just(nodes), st.integers(0, 2 * nodes), st.integers(2, 5))
)
LARGE = st.builds(Sizes, st.integers(21, 200), st.integers(0, 200), st.just(2))


def check(shard: int, draw: int, sizes: Sizes) -> None:
    found = run_case(draw * SHARDS + shard, sizes)
    assert not found, "\n".join(found)


def decision_property(shard: int, sizes: st.SearchStrategy[Sizes], cases: int) -> Callable[[], None]:
    """A test: engine and reference decide alike in `cases` cases that no other shard sees."""

    @settings(
        max_examples=cases,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.integers(0, 2**40), sizes)
    def test(draw: int, sizes: Sizes) -> None:
        check(shard, draw, sizes)

    return test
