"""Bytes in chunks to lines, in time linear in their size however long a line is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines without newline, empty ones left out; a last line needs no newline when the end was clean."""
    parts: list[bytes] = []  # the pieces of the line that has no newline yet
    async for chunk in chunks:
        head, newline, rest = chunk.partition(b"\n")
        parts.append(head)
        if not newline:
            continue
        line = b"".join(parts)
        if line:
            yield line
        complete = rest.split(b"\n")
        parts = [complete.pop()]
        for line in complete:
            if line:
                yield line
    tail = b"".join(parts)
    if tail:
        yield tail


@asynccontextmanager
async def closed_at_end(lines: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """Closes a generator that is left before its end now, and not whenever it is collected."""
    try:
        yield lines
    finally:
        close = getattr(lines, "aclose", None)
        if close is not None:
            await close()
