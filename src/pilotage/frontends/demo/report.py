"""The demo's summary as text for a terminal of 80 columns or more.

Law: on a terminal no line is longer than it is wide, except for the commands at the end, which are to be
copied; in a pipe a reason is one line, which can be searched.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from pilotage.frontends.demo.summary import Pending, Summary, Utilisation

BARS = "▁▂▃▄▅▆▇█"
BAR_WIDTH = 40
_INDENT = 2


def print_report(console: Console, summary: Summary, next_commands: Sequence[tuple[str, str]]) -> None:
    """`next_commands`: (command, what it is for)."""
    console.print()
    _print_head(console, summary)
    _print_section(console, "Pods per zone", _zones(summary, min(BAR_WIDTH, console.width // 2)))
    _print_section(console, "Requested cpu, one bar per node", _pools(summary.utilisation))
    if summary.pending:
        _print_pending(console, summary.pending)
    if next_commands:
        console.print("\n[bold]Next[/]")
        for command, purpose in next_commands:
            console.print(f"  [dim]# {escape(purpose)}[/]", highlight=False)
            console.print(f"  {escape(command)}", highlight=False, soft_wrap=True)


def _print_head(console: Console, summary: Summary) -> None:
    waiting = sum(len(group.pods) for group in summary.pending)
    facts = {
        "Pods": f"[bold green]{summary.bound} bound[/] to {summary.nodes} nodes in {summary.elapsed:.1f} s,"
        f" {summary.running} running, [bold yellow]{waiting} pending[/]",
        "Time to bind": f"p50 {_duration(summary.bind_p50)}, p99 {_duration(summary.bind_p99)}",
        "API calls": ", ".join(f"{count} {name}" for name, count in summary.calls.items()),
    }
    for name, text in facts.items():
        if text:
            console.print(f"[bold]{name:<14}[/]{text}", highlight=False)


def _print_section(console: Console, title: str, content: Table) -> None:
    console.print(f"\n[bold]{title}[/]")
    console.print(Padding(content, (0, 0, 0, _INDENT)), highlight=False)


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _zones(summary: Summary, width: int) -> Table:
    table = Table.grid(padding=(0, 2))
    most = max(summary.zones.values(), default=0) or 1
    for zone, count in summary.zones.items():
        table.add_row(zone, f"[cyan]{'█' * round(count / most * width)}[/] {count}")
    return table


def _pools(pools: Sequence[Utilisation]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold")
    for pool in pools:
        bars = "".join(_bar(share) for share in pool.cpu)
        mean = sum(pool.cpu) / len(pool.cpu) if pool.cpu else 0.0
        table.add_row(pool.pool, f"[cyan]{bars}[/]", f"{len(pool.cpu)} nodes", f"mean {mean:.0%}")
    return table


def _bar(share: float) -> str:
    """One character: eighths of the node, nothing at all as a dot."""
    return BARS[min(7, max(0, round(share * 8) - 1))] if share > 0 else "·"


def _print_pending(console: Console, groups: Sequence[Pending]) -> None:
    console.print("\n[bold]Pending, and why[/]")
    for group in groups:
        for pod in group.pods:
            console.print(f"  [yellow]{escape(pod)}[/]", highlight=False)
        _print_reason(console, group.reason)


def _print_reason(console: Console, reason: str) -> None:
    """Wrapped for people, whole for whoever reads a pipe."""
    if console.is_terminal:
        console.print(Padding(escape(reason), (0, 0, 0, 2 * _INDENT)), highlight=False)
    else:
        console.print(" " * 2 * _INDENT + escape(reason), highlight=False, soft_wrap=True)
