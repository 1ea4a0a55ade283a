"""`pilotage bench storm` in virtual time: the aims of every variant, at sizes that keep a test short.

The full sizes are the program's own business: `pilotage bench storm --virtual`, and without it in real time.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotage.calls.queue import CallQueue
from pilotage.frontends.bench.report import Report
from pilotage.frontends.bench.scenario import A1, PRESETS, STORM, Storm
from pilotage.frontends.bench.virtual import run_virtual

pytestmark = pytest.mark.slow

GATE_OFF = {"SchedulerAsyncAPICalls": False}
# Five times as many bad pods as tokens in the burst; the good ones come amidst their patches.
SMALL = replace(PRESETS[STORM], nodes=5, bad=200, good=20, rate=20.0, delay=1.0, qps=20.0, burst=40)


def run(storm: Storm, timeout: float = 120.0) -> Report:
    return run_virtual(storm, timeout)


def missed(report: Report) -> list[str]:
    return [f"{verdict.aim.figure}: {verdict.value}" for verdict in report.verdicts if not verdict.holds]


def test_good_pods_do_not_wait_behind_status_patches() -> None:
    report = run(SMALL)
    assert missed(report) == []
    assert report.sent is not None
    assert report.figures.last_condition > SMALL.delay + SMALL.creation_seconds, "patches were still waiting"
    assert report.sent.patches_most == 1
    assert report.sent.requests["POST pods/binding"] == SMALL.good


def test_nor_where_every_request_takes_longer() -> None:
    report = run(replace(SMALL, latency=0.3))
    assert missed(report) == []
    assert 0.299 < report.figures.bind_p50 < 2, "the latency is in it"


def test_nor_where_half_of_the_calls_are_refused() -> None:
    report = run(replace(SMALL, reject=0.5))
    assert missed(report) == []
    assert report.figures.bind_max >= 1, "some bind was refused, and Retry-After kept"
    assert report.sent is not None
    refused, sent = report.sent.too_many_requests, sum(report.sent.requests.values())
    assert 0.4 < refused / sent < 0.6


def test_without_the_gate_they_wait_as_in_kube_scheduler() -> None:
    storm = replace(SMALL, gates=GATE_OFF)
    report = run(storm)
    assert missed(report) == [], "no aim on the time"
    assert report.figures.bind_p50 > 3, (
        "a cycle waits for its patch, and the good pod for the cycles before it"
    )
    assert report.sent is not None
    assert report.sent.patches_most == 1


def test_without_the_gate_no_wake_walks_all_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[float] = []
    walk = CallQueue.pending
    monkeypatch.setattr(CallQueue, "pending", lambda self, now: walks.append(now) or walk(self, now))
    run(replace(SMALL, gates=GATE_OFF))
    assert len(walks) < 10, "thousands of events may wait, and each wake would cost them all"


def test_a1() -> None:
    report = run(PRESETS[A1])
    assert missed(report) == []
    assert report.figures.bind_max <= 2
    assert 30 < report.figures.last_condition <= 60, "QPS 5 for 200 patches"


def test_a1_without_the_gate() -> None:
    report = run(replace(PRESETS[A1], gates=GATE_OFF))
    assert missed(report) == []
    assert "bind_max" not in [verdict.aim.figure for verdict in report.verdicts]
    assert report.figures.bind_max > 30


def test_two_runs_with_one_seed_are_one_run() -> None:
    storm = replace(SMALL, bad=60, reject=0.5, seed=3)
    assert run(storm) == run(storm)
    assert run(replace(storm, seed=4)).sent != run(storm).sent


def test_a_storm_that_does_not_end_is_reported_as_it_stands() -> None:
    report = run(replace(SMALL, bad=20, reject=1.0), timeout=5.0)
    assert not report.has_passed
    assert report.figures.good_bound == 0
    assert report.figures.binds_lost == SMALL.good
    assert [v.holds for v in report.verdicts if v.aim.figure == "bind_p50"] == [False], "0 s of nothing"
