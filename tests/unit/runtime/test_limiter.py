"""The token bucket: burst first, then the rate; no rate, no limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotage.runtime.limiter import TokenBucket

EPOCH = 1_700_000_000.0


def test_burst_then_rate() -> None:
    bucket = TokenBucket(5, 10)
    assert bucket.whole(EPOCH) == 10
    bucket.spend(10, EPOCH)
    assert bucket.whole(EPOCH) == 0
    assert bucket.seconds_until(1, EPOCH) == 0.2
    assert bucket.whole(EPOCH + 0.2) == 1
    assert bucket.whole(EPOCH + 100) == 10


def test_no_rate_is_no_limit() -> None:
    bucket = TokenBucket(-1, 0)
    bucket.spend(1000, EPOCH)
    assert bucket.whole(EPOCH) is None
    assert bucket.seconds_until(5, EPOCH) == 0.0


@given(st.floats(0.1, 5000), st.integers(1, 200), st.integers(1, 200))
def test_waiting_as_long_as_told_is_enough(qps: float, burst: int, want: int) -> None:
    bucket, now = TokenBucket(qps, burst), EPOCH
    bucket.spend(burst, now)
    now += bucket.seconds_until(want, now)
    assert (bucket.whole(now) or 0) >= min(want, burst)
