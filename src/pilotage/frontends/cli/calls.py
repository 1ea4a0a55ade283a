"""`pilotage calls`: which API calls of a running scheduler wait, and which are on their way."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import rich_click as click

from pilotage.calls.types import Lane
from pilotage.frontends.cli.schedulerpage import ask_calls

Row = Mapping[str, Any]
LANES = [lane.name.lower() for lane in Lane]
_HEADER = ("LANE", "TYPE", "OBJECT", "STATE", "AGE", "TRIES", "PHASE")


@click.command()
@click.option(
    "--scheduler",
    required=True,
    metavar="URL",
    help="The scheduler's health address (`pilotage run --health-port PORT`: http://127.0.0.1:PORT).",
)
@click.option("--lane", "lanes", multiple=True, type=click.Choice(LANES), help="Only this lane (repeatable).")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    help="Only this call type, such as pod_binding (repeatable).",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    metavar="N",
    help="Rows at most; 0: all.",
)
@click.option("-w", "--watch", is_flag=True, help="Again every --every seconds, until Ctrl-C.")
@click.option("--every", type=click.FloatRange(min=0.1), default=1.0, show_default=True, metavar="SECONDS")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for machines; with --watch one JSON object a line.",
)
def calls(
    scheduler: str,
    lanes: tuple[str, ...],
    types: tuple[str, ...],
    limit: int,
    watch: bool,
    every: float,
    output: str,
) -> None:
    """Show the API calls of a running scheduler: what waits, what is on its way, and how fast they may go.

    A call waits for its turn in its lane, for a token, or for a delay before another try. Numbers by lane and
    type are of all calls that the filters let through, also of those past --limit.

    Example: `pilotage up --health-port 10251`, then `pilotage calls --scheduler 127.0.0.1:10251 --watch`.
    """
    while True:
        page = ask_calls(scheduler)
        rows = [row for row in page["calls"] if _is_wanted(row, lanes, types)]
        if output == "json":
            click.echo(msgspec.json.encode({**page, "calls": rows}))
        else:
            click.echo("\n".join(lines(rows, page.get("limiter") or {}, limit)))
        if not watch:
            return
        time.sleep(every)
        if output == "text":
            click.echo()


def _is_wanted(row: Row, lanes: Sequence[str], types: Sequence[str]) -> bool:
    return (not lanes or row["lane"] in lanes) and (not types or row["type"] in types)


def lines(rows: Sequence[Row], limiter: Row, limit: int) -> Iterator[str]:
    """The text: totals, the limiter, and the rows, the most urgent lane and the oldest call first."""
    out = sum(bool(row["inFlight"]) for row in rows)
    yield f"{len(rows) - out} waiting, {out} in flight"
    yield from _totals(rows)
    yield from _limits(limiter)
    if not rows:
        return
    ordered = sorted(
        rows, key=lambda row: (LANES.index(row["lane"]), not row["inFlight"], -row["ageSeconds"])
    )
    yield ""
    yield from _columns([_HEADER, *map(_cells, ordered[: limit or None])])
    if limit and len(rows) > limit:
        yield f"... and {len(rows) - limit} more (--limit 0 shows all)"


def _totals(rows: Sequence[Row]) -> Iterator[str]:
    counts = Counter((row["lane"], row["type"], bool(row["inFlight"])) for row in rows)
    kinds = sorted({(lane, name) for lane, name, _ in counts}, key=lambda one: (LANES.index(one[0]), one[1]))
    for lane, name in kinds:
        yield f"  {lane}: {name} {counts[lane, name, False]} waiting, {counts[lane, name, True]} in flight"


def _limits(limiter: Row) -> Iterator[str]:
    if not limiter:
        return
    tokens = limiter.get("tokens")
    rate = (
        "no limit"
        if tokens is None
        else f"{limiter['qps']:g} requests/s, {tokens} of {limiter['burst']} tokens"
    )
    yield f"limiter: {rate}; the server accepts {limiter.get('accepted', 1.0):.0%}"
    slowed = [f"{lane} {share:.0%}" for lane, share in (limiter.get("shares") or {}).items() if share < 1]
    if slowed:
        yield f"slowed down: {', '.join(slowed)} of the rate"


def _cells(row: Row) -> tuple[str, ...]:
    name = f"{row['namespace']}/{row['name']}".lstrip("/")
    state = "in flight" if row["inFlight"] else "waiting"
    age = f"{row['ageSeconds']:.1f}s"
    return (
        row["lane"],
        row["type"],
        f"{row['resource']} {name}",
        state,
        age,
        str(row["tries"]),
        row["phase"],
    )


def _columns(table: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table:
        yield "   ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
