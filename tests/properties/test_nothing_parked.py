"""Nobody is parked for ever: who waits after the last event would be rejected again (reference/parked.py)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reference.parked import Life, Sizes

CASES = 250
SIZES = st.integers(0, 8).flatmap(
    lambda nodes: st.builds(
        Sizes, st.just(nodes), st.integers(0, 2 * nodes), st.integers(1, 10), st.integers(1, 25)
    )
)


@pytest.mark.slow
@settings(
    max_examples=CASES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.integers(0, 2**40), SIZES)
def test_whoever_still_waits_would_be_rejected_again(seed: int, sizes: Sizes) -> None:
    life = Life(seed, sizes)
    found = life.run()
    assert not found, "\n".join([*found, *life.log])
    found = life.after_flush()
    assert not found, "\n".join([*found, *life.log])
