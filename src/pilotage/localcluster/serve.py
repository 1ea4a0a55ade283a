"""The server's child process: `python -m pilotage.localcluster.serve`, started by `ServerProcess` only.

It reads its settings as one JSON line from stdin, answers one JSON line on stdout (`ready` or `error`), and
lives until stdin ends: the parent holds the other side, so the end comes with the parent's, however it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import gc
import json
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from types import FrameType
from typing import Any

import uvicorn

from pilotage.localcluster import tls
from pilotage.localcluster.host import ApiHost
from pilotage.localcluster.http import HttpApp
from pilotage.localcluster.inprocess import InProcessTransport
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.server import ApiServer, make_store

_LAST_SECONDS = 5.0  # from the end of stdin to a hard exit
_PR_SET_PDEATHSIG = 1
_LOOPBACK = "127.0.0.1"

_log = logging.getLogger(__name__)


class SystemClock:
    def time(self) -> float:
        return time.time()


class _Uvicorn(uvicorn.Server):
    """Leaves the process's signals to us."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def main() -> None:
    settings: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    _die_with(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        listener = _listen(settings["port"])
    except OSError as error:
        _report({"error": _why_not_listening(settings["port"], error)})
        sys.exit(1)
    _run(_serve(settings, listener))


def _run(coroutine: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(coroutine)
    else:
        uvloop.run(coroutine)


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_LOOPBACK, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def _why_not_listening(port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use: choose another one, or 0 to have a free one picked"
    return f"cannot listen on {_LOOPBACK}:{port}: {error.strerror or error}"


def _report(message: dict[str, Any]) -> None:
    """The one line that the parent reads; whatever is printed later goes to stderr."""
    with contextlib.suppress(BrokenPipeError):  # the parent is gone; the end of stdin ends us too
        os.write(sys.stdout.fileno(), json.dumps(message).encode() + b"\n")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


def _die_with(parent: int) -> None:
    """Linux tells us at once when the thread that started us ends; it counts if the parent is gone too."""

    def check(_signal: int, _frame: FrameType | None) -> None:
        if os.getppid() != parent:
            os._exit(0)

    signal.signal(signal.SIGUSR1, check)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)
    check(signal.SIGUSR1, None)


def _stop_with_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Watches stdin in a thread of its own, so that a busy loop cannot keep us alive."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        with contextlib.suppress(RuntimeError):  # the loop is closed: we are on our way out already
            loop.call_soon_threadsafe(stop.set)
        time.sleep(_LAST_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


async def _serve(settings: dict[str, Any], listener: socket.socket) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    _stop_with_parent(loop, stop)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    clock = SystemClock()
    seed = settings["seed"]
    ids = Ids(secrets.token_bytes(32) if seed is None else str(seed).encode())
    store = make_store(history=settings["history"])
    host = ApiHost(ApiServer(store, ids, clock.time(), has_storage=settings["services"]), clock)
    token = settings["token"] or secrets.token_urlsafe(32)
    material = tls.generate()
    server = _Uvicorn(_config(HttpApp(host, token), material))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    tasks = [serving]
    if settings["services"]:
        tasks.append(asyncio.create_task(_run_services(host, clock, stop)))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)  # requests make trees and drop them; what stays holds no cycles
    port = listener.getsockname()[1]
    _report({"ready": {"url": f"https://{_LOOPBACK}:{port}", "token": token, "ca": material.ca.decode()}})
    await _until_stopped(tasks, stop)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # connections that we cut are no news
    host.drop_watches()
    server.should_exit = True
    await asyncio.wait(tasks, timeout=3)


def _config(app: HttpApp, material: tls.TlsMaterial) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=1,
        backlog=1024,
    )
    config.load()
    config.ssl = tls.server_context(material)
    return config


async def _until_stopped(tasks: list[asyncio.Task[None]], stop: asyncio.Event) -> None:
    """Until the parent wants it or something ended that should not have."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if task.done() and not task.cancelled() and task.exception() is not None:
            _log.error("the cluster stops: %r", task.exception())
    stop.set()
    stopping.cancel()


async def _run_services(host: ApiHost, clock: SystemClock, stop: asyncio.Event) -> None:
    from pilotage.localcluster.cluster import ClusterServices  # not needed by a bare server

    await ClusterServices(InProcessTransport.over(host), clock).run(stop)


if __name__ == "__main__":
    main()
