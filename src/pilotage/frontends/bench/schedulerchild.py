"""The measured scheduler's own process: `python -m pilotage.frontends.bench.schedulerchild`.

Apart from the measuring client, so that neither takes the other's loop. It reads its orders as one JSON line
from stdin, answers `ready` (or `error`) as one line on stdout, runs until stdin ends, and then says what it
sent as one more line. The parent holds the other side: the end comes with the parent's, however it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from typing import Any

import msgspec

from pilotage.client.credentials import CredentialsError, load
from pilotage.client.http import HttpTransport
from pilotage.framework.profile import ProfileError
from pilotage.frontends.bench.faultsetting import CLIENT, put_faults
from pilotage.frontends.bench.scenario import Storm
from pilotage.frontends.bench.settings import settings_for
from pilotage.frontends.bench.traffic import count
from pilotage.plugins import default_registry
from pilotage.runtime.logging_setup import set_up_logging
from pilotage.runtime.run import RunOptions, loop_factory, serve
from pilotage.testing.faults import Faults
from pilotage.testing.faultytransport import FaultyTransport

_LAST_SECONDS = 10.0  # from the end of stdin to a hard exit
_FAULTS = (CredentialsError, ProfileError, OSError)


class Orders(msgspec.Struct, frozen=True):
    storm: Storm
    kubeconfig: str
    context: str | None = None


def main() -> None:
    orders = msgspec.json.decode(sys.stdin.buffer.readline(), type=Orders)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    set_up_logging(level=logging.ERROR)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_run(orders))
    except _FAULTS as problem:
        _say({"error": str(problem)})
        sys.exit(1)


async def _run(orders: Orders) -> None:
    stop = asyncio.Event()
    _stop_with_stdin(asyncio.get_running_loop(), stop)
    faults = Faults()
    put_faults(faults, orders.storm)
    door = HttpTransport(load(orders.kubeconfig, orders.context), user_agent="pilotage-bench")
    registry = default_registry()
    settings = settings_for(orders.storm, registry)
    try:
        await serve(
            FaultyTransport(door, faults, CLIENT),
            settings,
            registry,
            stop,
            RunOptions(seed=orders.storm.seed),
            lambda _: _say({"ready": True}),
        )
    finally:
        await door.close()
    _say({"traffic": count(faults.log.records)})


def _stop_with_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Watches stdin in a thread of its own, so that a busy loop cannot keep us alive."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(stop.set)
        time.sleep(_LAST_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _say(message: dict[str, Any]) -> None:
    text = memoryview(msgspec.json.encode(message) + b"\n")
    with contextlib.suppress(BrokenPipeError):  # the parent is gone: nobody wants to know
        while text:
            text = text[os.write(1, text) :]


if __name__ == "__main__":
    main()
