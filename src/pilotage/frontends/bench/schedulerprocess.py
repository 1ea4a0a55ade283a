"""The measured scheduler as the bench holds it: a child process, never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

import msgspec

from pilotage.frontends.bench.scenario import Storm
from pilotage.frontends.bench.schedulerchild import Orders
from pilotage.frontends.bench.traffic import Traffic

_READY_SECONDS = 60.0
_STOP_SECONDS = 15.0
_LINE_BYTES = 2**26


class SchedulerError(RuntimeError):
    """The measured scheduler did not start or did not say what it sent."""


class _Answer(msgspec.Struct):
    ready: bool = False
    error: str = ""
    traffic: Traffic | None = None


class SchedulerProcess:
    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child

    async def stop(self) -> Traffic:
        """Ends it; what it sent. Raises SchedulerError."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        answer = await _read(self._child, _STOP_SECONDS)
        if answer.traffic is None:
            raise SchedulerError(f"the scheduler did not end well: {answer.error or 'no word of it'}")
        await self._child.wait()
        return answer.traffic


@contextlib.asynccontextmanager
async def scheduler_process(
    storm: Storm, kubeconfig: str, context: str | None
) -> AsyncIterator[SchedulerProcess]:
    """A scheduler that decides already. Raises SchedulerError."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "pilotage.frontends.bench.schedulerchild"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LINE_BYTES,
        process_group=0,  # Ctrl-C in a terminal is the parent's business, from the first instant on
    )
    try:
        assert child.stdin is not None
        child.stdin.write(msgspec.json.encode(Orders(storm, kubeconfig, context)) + b"\n")
        answer = await _read(child, _READY_SECONDS)
        if not answer.ready:
            raise SchedulerError(f"the scheduler did not start: {answer.error or 'it ended'}")
        yield SchedulerProcess(child)
    finally:
        await _end(child)


async def _read(child: asyncio.subprocess.Process, timeout: float) -> _Answer:
    assert child.stdout is not None
    try:
        line = await asyncio.wait_for(child.stdout.readline(), timeout)
    except TimeoutError:
        raise SchedulerError(f"no word of the scheduler within {timeout:g} s") from None
    return msgspec.json.decode(line, type=_Answer) if line else _Answer()


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.returncode is not None:
        return
    assert child.stdin is not None
    child.stdin.close()
    try:
        await asyncio.wait_for(child.wait(), _STOP_SECONDS)
    except (TimeoutError, asyncio.CancelledError):
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
        raise
