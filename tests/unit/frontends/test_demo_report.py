"""The report as text: at 80 columns on a terminal, whole lines in a pipe, nothing lost to markup."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from pilotage.frontends.demo.report import print_report
from pilotage.frontends.demo.summary import Pending, Summary, Utilisation

REASON = (
    "0/50 nodes are available: 32 node(s) didn't match Pod's node affinity/selector, 9 node(s) didn't match"
    " pod anti-affinity rules, 9 node(s) had untolerated taint(s)."
)
SUMMARY = Summary(
    nodes=50,
    bound=286,
    running=285,
    zones={"zone-a": 100, "zone-b": 50, "zone-c": 0},
    utilisation=(Utilisation("general", (0.0, 0.1, 0.5, 1.0) * 5), Utilisation("gpu", ())),
    pending=(Pending(("data/db-5b6c7d8f9-abcde",), REASON), Pending(("ml/[bold]odd",), "[red]not markup")),
    bind_p50=0.4164,
    bind_p99=1.236,
    elapsed=1.34,
    calls={"sent": 584, "merged": 3},
)


def report(width: int, *, is_terminal: bool, summary: Summary = SUMMARY) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=is_terminal, color_system=None)
    print_report(console, summary, [("/opt/a/pilotage get pods -A", "every pod")])
    return out.getvalue()


def test_what_it_says() -> None:
    text = report(80, is_terminal=True)
    assert "286 bound to 50 nodes in 1.3 s, 285 running, 2 pending" in text
    assert "p50 416 ms, p99 1.24 s" in text
    assert "584 sent, 3 merged" in text
    assert "·▁▄█" in text
    assert "mean 40%" in text
    assert "zone-a  " + "█" * 40 + " 100" in text
    assert "zone-b  " + "█" * 20 + " 50" in text
    assert "[red]not markup" in text
    assert "ml/[bold]odd" in text
    assert text.rstrip().endswith("  /opt/a/pilotage get pods -A")


@pytest.mark.parametrize("width", [40, 80, 132])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    lines = report(width, is_terminal=True).splitlines()
    assert max(map(len, lines)) <= width


def test_reasons_stay_whole_in_a_pipe() -> None:
    assert f"    {REASON}\n" in report(80, is_terminal=False)


def test_an_empty_summary() -> None:
    empty = Summary(0, 0, 0, {}, (), (), 0.0, 0.0, 0.0)
    text = report(80, is_terminal=True, summary=empty)
    assert "0 bound to 0 nodes" in text
    assert "Pending, and why" not in text
    assert "API calls" not in text
