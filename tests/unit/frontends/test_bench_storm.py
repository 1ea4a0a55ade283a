"""The storm's parts: what a watch showed, what was sent, which aims hold, and how it reads."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from rich.console import Console

from pilotage.api.wire import Request
from pilotage.client.api import ApiClient, ApiError
from pilotage.frontends.bench.driving import until_accepted
from pilotage.frontends.bench.faultsetting import CLIENT, put_faults
from pilotage.frontends.bench.objects import Place, bad_pods, good_pods, namespace, nodes
from pilotage.frontends.bench.podtimes import PodTimes
from pilotage.frontends.bench.realtime import too_much
from pilotage.frontends.bench.report import Report, make_report
from pilotage.frontends.bench.scenario import A1, PRESETS, STORM, Storm, aims_of, baseline_of
from pilotage.frontends.bench.settings import settings_for
from pilotage.frontends.bench.text import print_report
from pilotage.frontends.bench.traffic import Traffic, count
from pilotage.testing.faults import Faults
from pilotage.testing.harness import Harness
from pilotage.testing.requestlog import Record, RequestLog

DEFAULT = PRESETS[STORM]
TINY = replace(DEFAULT, bad=2, good=2)
OFF = {"SchedulerAsyncAPICalls": False}
PODS = "/api/v1/namespaces/x/pods"
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
OTHER = {**UNSCHEDULABLE, "reason": "SchedulingGated"}
Tree = dict[str, Any]


def pod(name: str, node: str = "", condition: Mapping[str, str] | None = None) -> Tree:
    labels = {"pilotage.dev/bench-role": name.partition("-")[0]}
    status = {"conditions": [condition] if condition else []}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": node}, "status": status}


def watched(*events: tuple[float, Tree]) -> PodTimes:
    times = PodTimes()
    for now, tree in events:
        times.record("MODIFIED", tree, now)
    return times


def sent(*requests: tuple[str, str, int | None]) -> list[Record]:
    log = RequestLog()
    for method, path, status in requests:
        record = log.open(CLIENT, Request(method, path), 0.0)
        if status:
            record.status, record.finished = status, 1.0
    return log.records


# -- the watch


def test_times_are_first_sights() -> None:
    times = watched(
        (1.0, pod("good-0")), (2.5, pod("good-0", "n1")), (9.0, pod("good-0", "n1")), (3.0, pod("bad-0"))
    )
    assert times.bind_seconds() == [1.5]
    assert times.nodes == {"good-0": "n1"}
    assert times.created_bad == 1
    assert not times.is_done(TINY)


def test_a_condition_counts_while_it_is_there() -> None:
    times = watched((1.0, pod("bad-0")), (2.0, pod("bad-0", "", UNSCHEDULABLE)))
    times.record("MODIFIED", pod("bad-0", "", UNSCHEDULABLE), 5.0)
    assert times.judged == {"bad-0": 2.0}
    assert times.last_condition() == 1.0
    times.record("MODIFIED", pod("bad-0", "", OTHER), 6.0)
    assert times.judged == {}
    assert times.last_condition() == 0.0


def test_pods_of_others_and_deletions_are_nothing() -> None:
    times = watched((1.0, {**pod("x"), "metadata": {"name": "x", "labels": {}}}))
    times.record("DELETED", pod("good-0", "n1"), 2.0)
    assert times == PodTimes()


# -- what was sent


def test_calls_by_kind_without_what_a_start_reads() -> None:
    found = count(
        sent(
            ("GET", "/api/v1", 200),
            ("GET", "/apis/apps/v1", 200),
            ("GET", "/api/v1/nodes", 200),
            ("GET", f"{PODS}/good-0", 200),
            ("POST", f"{PODS}/good-0/binding", 429),
            ("POST", f"{PODS}/good-0/binding", 201),
            ("POST", f"{PODS}/good-1/binding", None),
            ("PATCH", f"{PODS}/bad-0/status", 200),
            ("PATCH", f"{PODS}/bad-0/status", 409),
            ("POST", "/apis/events.k8s.io/v1/namespaces/x/events", 201),
        )
    )
    assert found.requests == {
        "GET pods": 1,
        "POST pods/binding": 3,
        "PATCH pods/status": 2,
        "POST events": 1,
    }
    assert found.refused == {"POST pods/binding 429": 1, "PATCH pods/status 409": 1}
    assert found.binds == {"good-0": 1, "good-1": 1}, "the refused one never reached the server"
    assert found.patches == {"bad-0": 2}
    assert found.too_many == 1
    assert msgspec.json.decode(msgspec.json.encode(found), type=Traffic) == found


# -- faults


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_one_draw_per_call_and_none_for_reads_of_a_start(share: float) -> None:
    storm, faults = replace(TINY, reject=share, seed=7), Faults(lambda: 0.0)
    put_faults(faults, storm)
    hits = Counter[str]()
    for number in range(1000):
        for method, path in (("PATCH", f"{PODS}/bad-{number}/status"), ("GET", PODS), ("GET", "/api/v1")):
            record = faults.log.open(CLIENT, Request(method, path), 0.0)
            hits[path if method == "GET" else method] += len(faults.candidates(record))
    assert hits[PODS] == hits["/api/v1"] == 0
    assert hits["PATCH"] == pytest.approx(1000 * share, abs=50)  # a second draw would halve it at least


def test_faults_are_the_schedulers_only() -> None:
    faults = Faults(lambda: 0.0)
    put_faults(faults, replace(TINY, reject=1.0, latency=0.3))
    request = Request("POST", PODS)
    assert faults.candidates(faults.log.open("bench", request, 0.0)) == []
    assert len(faults.candidates(faults.log.open(CLIENT, request, 0.0))) == 2


# -- objects and settings


def test_pods_go_to_own_nodes_only() -> None:
    place = Place("r1")
    (node,) = nodes(replace(TINY, nodes=1), place)
    for tree in (*bad_pods(TINY, place), *good_pods(TINY, place)):
        assert tree["spec"]["nodeSelector"].items() <= node["metadata"]["labels"].items()
        assert tree["metadata"]["namespace"] == "pilotage-bench-r1"


def test_on_nodes_of_others_the_bad_pods_are_as_big_as_it_takes() -> None:
    place = Place("r1", has_own_nodes=False, bad_cpu="64000m")
    (spec, *_) = [tree["spec"] for tree in bad_pods(TINY, place)]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "64000m"}
    assert "nodeSelector" not in spec
    assert "tolerations" not in spec


def test_the_scheduler_gets_the_limits_and_gates() -> None:
    settings = settings_for(replace(TINY, qps=5, burst=7, gates=OFF))
    assert (settings.qps, settings.burst) == (5.0, 7)
    assert settings.gates["SchedulerAsyncAPICalls"] is False
    assert [profile.scheduler_name for profile in settings.profiles] == ["pilotage-bench"]


def test_too_much_is_more_than_any_node_has() -> None:
    sizes = ["3900m", "16", "2"]
    found: list[Tree] = [{"status": {"allocatable": {"cpu": size}}} for size in sizes]
    assert too_much([*found, {"status": {}}], TINY) == 32_000
    assert too_much([{"status": {}}], TINY) == 8_000


@pytest.mark.parametrize(
    ("status", "times", "ends_well"), [(403, 3, True), (403, 999, False), (422, 1, False)]
)
def test_a_namespace_may_refuse_pods_at_first(status: int, times: int, ends_well: bool) -> None:
    with Harness(services=None, scheduler=False) as h:
        h.faults.answer(status, path="/pods$", method="POST", times=times)
        client = ApiClient(h.server.transport(h.faults, "bench"))
        pod = good_pods(TINY, Place("r"))[0]
        h.create(namespace(Place("r")))
        if ends_well:
            h.do(until_accepted(client, pod))
        else:
            with pytest.raises(ApiError):
                h.do(until_accepted(client, pod))
        assert h.now == (0.0 if status == 422 else pytest.approx(min(times * 0.1, 10.1), abs=0.01))
        assert h.objects("pods") == []


# -- aims and the report


def aims(storm: Storm) -> dict[str, float]:
    return {aim.figure: aim.limit for aim in aims_of(storm)}


COUNTS = {"binds_lost": 0, "binds_sent_twice": 0}


@pytest.mark.parametrize(
    ("storm", "expected"),
    [
        (DEFAULT, {"bind_p99": 1.0, "conditions_missing": 0}),
        (replace(DEFAULT, latency=0.3), {"bind_p99": 2.0, "conditions_missing": 0}),
        (replace(DEFAULT, reject=0.5), {"bind_p50": 3.0, "bind_p99": 10.0}),
        (replace(DEFAULT, gates=OFF), {"conditions_missing": 0}),
        (PRESETS[A1], {"bind_max": 2.0, "conditions_missing": 0, "last_condition": 60.0}),
        (replace(PRESETS[A1], gates=OFF), {"conditions_missing": 0, "last_condition": 60.0}),
    ],
)
def test_aims(storm: Storm, expected: dict[str, float]) -> None:
    assert aims(storm) == {**expected, **COUNTS}


def test_the_baseline_is_that_of_the_very_scenario() -> None:
    on, off = baseline_of(DEFAULT), baseline_of(replace(DEFAULT, gates=OFF, seed=5))
    assert on is not None
    assert off is not None
    assert (on.p50, on.p99, off.p50, off.p99) == (22.1, 27.4, 26.2, 31.4)
    assert baseline_of(replace(DEFAULT, bad=1999)) is None
    assert baseline_of(replace(DEFAULT, latency=0.3)) is None
    assert baseline_of(PRESETS[A1]) is None


def report_of(storm: Storm, binds: Mapping[str, int] | None = None, late: float = 0.5) -> Report:
    times = watched(
        (0.0, pod("bad-0")),
        (0.0, pod("bad-1")),
        (1.0, pod("bad-0", "", UNSCHEDULABLE)),
        (39.6, pod("bad-1", "", UNSCHEDULABLE)),
        (5.0, pod("good-0")),
        (5.004, pod("good-0", "n1")),
        (6.0, pod("good-1")),
        (6.0 + late, pod("good-1", "n1")),
    )
    requests = {"PATCH pods/status": 3, "POST pods/binding": 2}
    traffic = Traffic(
        requests, {"PATCH pods/status 409": 1}, 0, dict(binds or {}), {"bad-0": 1, "bad-1": 2, "good-0": 9}
    )
    return make_report(storm, times, traffic, place="test")


def test_figures() -> None:
    found = report_of(TINY, {"good-0": 1, "good-1": 1}).figures
    assert found.bind_max == 0.5
    assert (found.bind_p50, found.bind_p99) == pytest.approx((0.252, 0.49504)), "between 4 and 500 ms"
    assert found.last_condition == 39.6
    assert found.binds_lost == 0


def test_what_was_sent_in_numbers() -> None:
    found = report_of(TINY, {"good-0": 1, "good-1": 2}).sent
    assert found is not None
    assert (found.patches_mean, found.patches_most) == (1.5, 2), "good pods' patches are not among them"
    assert (found.binds, found.binds_sent_twice) == (3, 1)


def test_of_a_scheduler_of_others_only_the_watch_is_known() -> None:
    report = make_report(TINY, PodTimes(), None, place="a cluster", scheduler="other")
    assert "binds_sent_twice" not in [verdict.aim.figure for verdict in report.verdicts]
    text = text_of(report)
    assert "Scheduler    other; a cluster" in text
    assert "QPS" not in text
    assert "Requests" not in text


@pytest.mark.parametrize(
    ("report", "missed"),
    [
        (report_of(TINY), []),
        (report_of(TINY, late=1.2), ["bind_p99"]),
        (report_of(replace(TINY, latency=0.3), late=1.2), []),
        (report_of(replace(TINY, bad=3)), ["conditions_missing"]),
        (report_of(replace(TINY, good=3)), ["binds_lost"]),
        (report_of(TINY, {"good-0": 2}), ["binds_sent_twice"]),
    ],
)
def test_verdicts(report: Report, missed: list[str]) -> None:
    assert [verdict.aim.figure for verdict in report.verdicts if not verdict.holds] == missed
    assert report.has_passed is not bool(missed)


def text_of(report: Report) -> str:
    out = io.StringIO()
    print_report(Console(file=out, width=80, color_system=None), report)
    return out.getvalue()


def test_the_report_reads_well() -> None:
    text = text_of(replace(report_of(TINY, {"good-0": 2}), baseline=baseline_of(DEFAULT)))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "Creation to binding p50 p90 p99 max" in lines
    assert "Pilotage 252 ms 450 ms 495 ms 500 ms" in lines
    assert "kube-scheduler v1.36 22.1 s - 27.4 s -" in lines
    assert "Bad pods 2 of 2 say Unschedulable, the last 39.6 s after the first pod" in lines
    assert "Patches 1.50 of a bad pod's status, at most 2" in lines
    assert "Refused 1 PATCH pods/status 409" in lines
    assert "kept creation to binding p99: 495 ms (aim: less than 1.00 s)" in lines
    assert "missed binds sent twice: 1 (aim: none)" in lines


def test_no_bind_has_no_time_and_faults_are_named() -> None:
    storm = replace(TINY, latency=0.3, reject=0.5)
    text = text_of(make_report(storm, PodTimes(), Traffic(), place="test"))
    assert "Faults       every request takes 0.3 s longer, 50% of the calls are answered 429" in text
    assert "kube-scheduler" not in text
    assert "missed  creation to binding p50: 0 ms" in text
    (row,) = [line for line in text.splitlines() if line.startswith("Pilotage")]
    assert row.split() == ["Pilotage", "-", "-", "-", "-"]
