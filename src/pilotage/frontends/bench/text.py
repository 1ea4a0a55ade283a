"""A report for people: what was run, how it went, beside kube-scheduler where that was measured too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.table import Table

from pilotage.frontends.bench.report import Figures, Report, Verdict
from pilotage.frontends.bench.scenario import Storm

_LABEL = 12
_TIMES = ("last_condition",)
_WORDS: Mapping[str, str] = {
    "bind_p50": "creation to binding p50",
    "bind_p99": "creation to binding p99",
    "bind_max": "creation to binding, longest",
    "conditions_missing": "bad pods without their condition",
    "last_condition": "last condition",
    "binds_lost": "binds lost",
    "binds_sent_twice": "binds sent twice",
}


def print_report(console: Console, report: Report) -> None:
    for label, text in _head(report):
        _line(console, label, text)
    console.print()
    console.print(_bindings(report))
    console.print()
    for label, text in _facts(report):
        _line(console, label, text)
    console.print("\n[bold]Aims[/]")
    for verdict in report.verdicts:
        mark = "[green]kept  [/]" if verdict.holds else "[bold red]missed[/]"
        console.print(f"  {mark}  {aim_text(verdict)}", highlight=False, soft_wrap=True)


def _line(console: Console, label: str, text: str) -> None:
    console.print(f"[bold]{label:<{_LABEL}}[/] {text}", highlight=False, soft_wrap=True)


def _head(report: Report) -> Iterator[tuple[str, str]]:
    storm = report.storm
    yield "Scenario", scenario_text(storm)
    if report.sent is None:
        yield "Scheduler", f"{report.scheduler}; {report.place}"
        return
    gate = "on" if storm.is_async else "off"
    yield (
        "Scheduler",
        f"QPS {storm.qps:g}, burst {storm.burst}, asynchronous API calls {gate}; {report.place}",
    )
    if storm.is_faulty:
        yield "Faults", ", ".join(_faults(storm))


def scenario_text(storm: Storm) -> str:
    when = f", {storm.delay:g} s later" if storm.delay else ", then"
    pace = f"at {storm.rate:g}/s" if storm.rate else "at once"
    return (
        f"{storm.bad} pods of {storm.bad_cpu} CPU that fit on no node{when} {storm.good} of"
        f" {storm.good_cpu} CPU {pace}"
    )


def _faults(storm: Storm) -> Iterator[str]:
    if storm.latency:
        yield f"every request takes {storm.latency:g} s longer"
    if storm.reject:
        yield f"{storm.reject:.0%} of the calls are answered 429, Retry-After 1"


def _bindings(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    table.add_column("Creation to binding", no_wrap=True)
    for name in ("p50", "p90", "p99", "max"):
        table.add_column(name, justify="right", no_wrap=True)
    found = report.figures
    ours = (found.bind_p50, found.bind_p90, found.bind_p99, found.bind_max)
    measured = found.good_bound > 0
    table.add_row(report.scheduler, *(duration(value) if measured else "-" for value in ours))
    if (upstream := report.baseline) is not None:
        table.add_row("kube-scheduler v1.36", duration(upstream.p50), "-", duration(upstream.p99), "-")
    return table


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    found, sent, storm = report.figures, report.sent, report.storm
    yield "Good pods", f"{found.good_bound} of {storm.good} bound"
    yield "Bad pods", _bad(found, storm)
    if sent is None:
        return
    yield "Patches", f"{sent.patches_mean:.2f} of a bad pod's status, at most {sent.patches_most}"
    yield "Binds", f"{sent.binds} sent, {found.binds_lost} lost, {sent.binds_sent_twice} sent twice"
    yield "Requests", _counts(sent.requests)
    if sent.refused:
        yield "Refused", _counts(sent.refused)
    yield "429 seen", str(sent.too_many_requests)


def _bad(found: Figures, storm: Storm) -> str:
    judged = storm.bad - found.conditions_missing
    when = f", the last {duration(found.last_condition)} after the first pod" if judged else ""
    return f"{judged} of {storm.bad} say Unschedulable{when}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "none"


def aim_text(verdict: Verdict) -> str:
    """`creation to binding p99 20 ms, aim: less than 1.00 s`."""
    aim = verdict.aim
    is_time = aim.figure.startswith("bind_") or aim.figure in _TIMES
    show = duration if is_time else "{:.0f}".format
    bound = "at most" if aim.inclusive else "less than"
    limit = "none" if aim.inclusive and not aim.limit else f"{bound} {show(aim.limit)}"
    return f"{_WORDS[aim.figure]}: {show(verdict.value)} (aim: {limit})"


def duration(seconds: float) -> str:
    if seconds >= 10:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
