"""The one limiter of all lanes: reserves, shares under refusals and slow answers, recovery (A12)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.api.wire import Response
from pilotage.calls.types import Lane, NoAnswer, Result
from pilotage.runtime.limiter_adaptive import FLOOR, CallLimiter
from pilotage.runtime.serverhealth import ServerHealth

EPOCH = 1_700_000_000.0
OK, BUSY, BROKEN = Response(200, b""), Response(429, b""), Response(500, b"")
LOW = (Lane.VOLUME, Lane.NOMINATION, Lane.STATUS, Lane.EVENT)


def fed(limiter: CallLimiter, results: list[Result], seconds: float = 0.01, now: float = EPOCH) -> float:
    """Shows the limiter these answers, 50 a second; returns the time after the last."""
    for result in results:
        limiter.saw(result, seconds, now)
        now += 0.02
    return now


def shares(limiter: CallLimiter, now: float) -> list[float]:
    return [limiter.share(lane, now) for lane in Lane]


def test_every_lane_leaves_something_to_those_above_it() -> None:
    allowance = CallLimiter(50, 100, 64).allowance({}, EPOCH)
    assert allowance.room == 64
    kept = [allowance.reserve.get(lane, 0) for lane in Lane]
    assert kept == sorted(kept)
    assert kept[0] == 0
    assert allowance.quota == {}


def test_the_reserve_is_of_tokens_and_of_workers() -> None:
    limiter = CallLimiter(50, 100, 64)
    limiter.spent([Lane.STATUS] * 80, EPOCH)
    assert not limiter.allowance({}, EPOCH).allows(Lane.STATUS)
    assert limiter.allowance({}, EPOCH).allows(Lane.BIND)
    assert limiter.seconds_until(Lane.BIND, EPOCH) == 0
    assert limiter.seconds_until(Lane.STATUS, EPOCH) == pytest.approx(1 / 50)
    busy = {Lane.BIND: 40, Lane.STATUS: 12}
    crowded = CallLimiter(50, 100, 64).allowance(busy, EPOCH)
    assert crowded.room == 12
    assert not crowded.allows(Lane.STATUS)
    assert crowded.allows(Lane.BIND)


def test_the_smallest_limits_still_let_every_lane_send() -> None:
    limiter = CallLimiter(1, 1, 1)
    assert all(limiter.allowance({}, EPOCH).allows(lane) for lane in Lane)


@pytest.mark.parametrize("refusal", [BUSY, BROKEN, NoAnswer(True), Response(408, b"")])
def test_refusals_shrink_the_low_lanes_first(refusal: Result) -> None:
    limiter = CallLimiter(50, 100, 64)
    now = fed(limiter, [OK] * 9 * 50 + [OK, OK, OK, OK, refusal] * 100)
    bind, volume, nomination, status, event = shares(limiter, now)
    assert (bind, volume, nomination) == (1, 1, 1)
    assert event < status
    now = fed(limiter, [refusal] * 1000, now=now)
    assert shares(limiter, now) == [1, FLOOR, FLOOR, FLOOR, FLOOR]


@pytest.mark.parametrize("status", [200, 201, 404, 409, 422, 403])
def test_answers_about_what_was_asked_shrink_nothing(status: int) -> None:
    limiter = CallLimiter(50, 100, 64)
    now = fed(limiter, [Response(status, b"")] * 500)
    assert shares(limiter, now) == [1] * 5


def test_one_refusal_of_a_quiet_client_changes_little() -> None:
    limiter = CallLimiter(50, 100, 64)
    limiter.saw(BUSY, 0.01, EPOCH)
    assert limiter.share(Lane.STATUS, EPOCH) == 1
    assert limiter.share(Lane.EVENT, EPOCH) > 0.5


def test_answers_that_take_longer_than_usual_shrink_them_too() -> None:
    limiter = CallLimiter(50, 100, 64)
    now = fed(limiter, [OK] * 1000, seconds=0.02)
    assert shares(limiter, now) == [1] * 5
    now = fed(limiter, [OK] * 300, seconds=1.5, now=now)
    assert limiter.share(Lane.EVENT, now) < limiter.share(Lane.STATUS, now) < 1
    assert limiter.share(Lane.BIND, now) == 1


def test_a_server_that_always_answers_slowly_is_not_called_slow() -> None:
    limiter = CallLimiter(50, 100, 64)
    now = fed(limiter, [OK] * 300, seconds=0.3)
    assert shares(limiter, now) == [1] * 5


def test_what_shrank_comes_back_without_a_single_answer() -> None:
    limiter = CallLimiter(50, 100, 64)
    now = fed(limiter, [BUSY] * 500)
    assert limiter.share(Lane.EVENT, now) == FLOOR
    assert shares(limiter, now + 40) == [1] * 5


def test_a_shrunk_lane_sends_at_its_share_of_the_rate() -> None:
    limiter = CallLimiter(50, 100, 64)
    now = fed(limiter, [BUSY, OK] * 500)
    share = limiter.share(Lane.STATUS, now)
    assert 0.2 < share < 0.7
    sent, end = 0, now + 20
    while now < end:
        limiter.saw(BUSY if sent % 2 else OK, 0.01, now)
        if limiter.allowance({}, now).allows(Lane.STATUS):
            limiter.spent([Lane.STATUS], now)
            sent += 1
        now += 0.01
    assert sent == pytest.approx(50 * share * 20, rel=0.25)


def test_without_a_rate_refusals_still_pace_the_low_lanes() -> None:
    limiter = CallLimiter(0, 1, 64)
    assert limiter.allowance({}, EPOCH).room == 64
    now = fed(limiter, [BUSY] * 500)
    limiter.spent([Lane.EVENT] * 20, now)
    assert not limiter.allowance({}, now).allows(Lane.EVENT)
    assert limiter.seconds_until(Lane.EVENT, now) > 0
    assert limiter.allowance({}, now).allows(Lane.BIND)


@given(
    st.lists(
        st.tuples(st.sampled_from([OK, BUSY, BROKEN, NoAnswer(False)]), st.floats(0, 60), st.floats(0, 30)),
        max_size=60,
    )
)
def test_shares_stay_in_bounds_and_in_order(answers: list[tuple[Result, float, float]]) -> None:
    limiter, now = CallLimiter(50, 100, 64), EPOCH
    for result, seconds, pause in answers:
        limiter.saw(result, seconds, now)
        found = shares(limiter, now)
        assert found == sorted(found, reverse=True)
        assert found[0] == 1
        assert all(FLOOR <= share <= 1 for share in found)
        assert all(limiter.seconds_until(lane, now) <= 5 / FLOOR for lane in Lane)
        now += pause


def test_health_of_a_server_that_nobody_asked() -> None:
    assert ServerHealth().level(EPOCH) == 1
