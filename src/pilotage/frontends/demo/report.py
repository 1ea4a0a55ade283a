"""The demo's summary as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pilotage.frontends.demo.summary import Pending, Summary, Utilisation

BARS = " ▁▂▃▄▅▆▇█"
BAR_WIDTH = 40


def print_report(console: Console, summary: Summary, next_commands: Sequence[tuple[str, str]]) -> None:
    waiting = sum(len(group.pods) for group in summary.pending)
    console.print()
    console.print(
        f"[bold green]{summary.bound} pods bound[/] to {summary.nodes} nodes in {summary.elapsed:.1f} s,"
        f" [bold yellow]{waiting} pending[/]"
        f" · time to bind p50 {_duration(summary.bind_p50)}, p99 {_duration(summary.bind_p99)}"
    )
    console.print(_zones(summary))
    console.print(_pools(summary.utilisation))
    if summary.calls:
        counts = ", ".join(f"{count} {name}" for name, count in summary.calls.items())
        console.print(f"[bold]API calls[/]: {counts}")
    if summary.pending:
        console.print(_pending(summary.pending))
    if next_commands:
        console.print("\n[bold]Next[/]")
        for command, purpose in next_commands:
            console.print(f"  [dim]# {escape(purpose)}[/]", highlight=False)
            console.print(f"  {escape(command)}", highlight=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _zones(summary: Summary) -> Table:
    table = Table(title="Pods per zone", title_justify="left", box=None, padding=(0, 1), show_header=False)
    most = max(summary.zones.values(), default=0) or 1
    for zone, count in summary.zones.items():
        table.add_row(zone, "█" * round(count / most * BAR_WIDTH), str(count))
    return table


def _pools(pools: Sequence[Utilisation]) -> Table:
    table = Table(
        title="Requested cpu, one bar per node",
        title_justify="left",
        box=None,
        padding=(0, 1),
        show_header=False,
    )
    for pool in pools:
        bars = "".join(BARS[min(8, round(share * 8))] for share in pool.cpu)
        mean = sum(pool.cpu) / len(pool.cpu) if pool.cpu else 0.0
        table.add_row(f"{pool.pool} ({len(pool.cpu)})", f"▕{bars}▏", f"mean {mean:.0%}")
    return table


def _pending(groups: Sequence[Pending]) -> Table:
    table = Table(title="Pending, and why", title_justify="left", padding=(0, 1))
    table.add_column("pods", overflow="fold", ratio=2)
    table.add_column("reason", overflow="fold", ratio=5)
    for group in groups:
        table.add_row("\n".join(group.pods), escape(group.reason))
    return table
