"""Plain text in columns, wrapped to a width, with the little colour that helps."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Sequence

import rich_click as click

NARROWEST, WIDEST = 80, 120


def width() -> int:
    """Columns of the terminal, within what can be read."""
    return min(max(shutil.get_terminal_size((WIDEST, 24)).columns, NARROWEST), WIDEST)


def wrapped(text: str, indent: str, columns: int, first: str | None = None) -> list[str]:
    """Lines that begin with `indent`, the first one with `first`."""
    return textwrap.wrap(
        text,
        columns,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def heading(text: str) -> str:
    return click.style(text, bold=True)


def pairs(rows: Iterable[tuple[str, str]], columns: int) -> list[str]:
    """`name  text` with the names in a column; rows without text are left out."""
    shown = [(name, text) for name, text in rows if text]
    size = max((len(name) for name, _ in shown), default=0) + 2
    lines: list[str] = []
    for name, text in shown:
        lines += wrapped(text, " " * (size + 2), columns, f"  {name.ljust(size)}")
    return lines


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [_line(row, widths) for row in (header, *rows)]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
    return f"  {'  '.join(cells)}".rstrip()
