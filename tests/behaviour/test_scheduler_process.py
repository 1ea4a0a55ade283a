"""The scheduler as a process over HTTPS against the embedded server's process: signals, pages, exit codes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from behaviour.world import NODES, PODS, node, pod
from pilotage.client.api import ApiClient
from pilotage.client.credentials import load
from pilotage.client.http import HttpTransport
from pilotage.localcluster.process import ServerProcess

pytestmark = [pytest.mark.network, pytest.mark.slow]

MAIN = """
import sys
from pilotage.runtime.config import default_settings
from pilotage.runtime.logging_setup import set_up_logging
from pilotage.runtime.run import RunOptions, run_scheduler

def ready(scheduler):
    print("ready", flush=True)

set_up_logging()
options = RunOptions(health_port=int(sys.argv[2]))
sys.exit(run_scheduler(default_settings(), kubeconfig=sys.argv[1], options=options, on_ready=ready))
"""


class Process:
    """A scheduler process whose standard error is kept in a file."""

    def __init__(self, kubeconfig: Path, directory: Path, port: int = 0) -> None:
        self._log = directory / "stderr"
        with open(self._log, "wb") as log:
            # Python's own development checks: whatever is left open or never awaited is said on stderr.
            self.child = subprocess.Popen(
                [sys.executable, "-X", "dev", "-c", MAIN, str(kubeconfig), str(port)],
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def wait_ready(self) -> None:
        assert self.child.stdout is not None
        assert self.child.stdout.readline() == b"ready\n", self.log

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 20
        while text not in self.log:
            assert self.child.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)  # another process writes it

    @property
    def log(self) -> str:
        return self._log.read_text()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.child.send_signal(number)
        return self.child.wait(timeout=20)

    def close(self) -> None:
        if self.child.poll() is None:
            self.child.kill()
        self.child.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("server") / "kubeconfig"
    with ServerProcess.start(services=False) as running:
        running.write_kubeconfig(path)
        yield path


@pytest.fixture
def scheduler(server: Path, tmp_path: Path) -> Iterator[Process]:
    process = Process(server, tmp_path)
    try:
        process.wait_ready()
        yield process
    finally:
        process.close()


def with_api(kubeconfig: Path, use: Any) -> Any:
    async def main() -> Any:
        transport = HttpTransport(load(str(kubeconfig)))
        try:
            return await use(ApiClient(transport))
        finally:
            await transport.close()

    return asyncio.run(main())


async def nodes_of(api: ApiClient, names: set[str]) -> dict[str, str]:
    """Waits until all of them are bound."""
    for _ in range(200):
        items = (await api.list(PODS, "default"))["items"]
        bound = {i["metadata"]["name"]: i["spec"].get("nodeName") for i in items}
        if all(bound.get(name) for name in names):
            return {name: bound[name] for name in names}
        await asyncio.sleep(0.05)  # another process works: there is nothing to wait on but the server
    raise AssertionError(f"not bound in time: {bound}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_pods_are_bound_and_a_signal_ends_it_cleanly(
    server: Path, scheduler: Process, number: signal.Signals
) -> None:
    names = {f"{number.name.lower()}-{i}" for i in range(50)}

    async def use(api: ApiClient) -> dict[str, str]:
        for name in (f"{number.name.lower()}-a", f"{number.name.lower()}-b"):
            await api.create(NODES, node(name, "100"))
        for name in sorted(names):
            await api.create(PODS, pod(name))
        return await nodes_of(api, names)

    assert set(with_api(server, use)) == names
    begin = time.monotonic()
    assert scheduler.end(number) == 0, scheduler.log
    assert time.monotonic() - begin < 5.0
    assert "stopped" in scheduler.log
    for trouble in ("Warning", "Traceback", "never", "Unclosed", "Bearer"):
        assert trouble not in scheduler.log


def test_the_pages(scheduler: Process) -> None:
    line = next(line for line in scheduler.log.splitlines() if "health and metrics on" in line)
    url = line.rpartition(" ")[2]

    async def main() -> dict[str, tuple[int, str]]:
        found = {}
        async with aiohttp.ClientSession() as session:
            for page in ("livez", "readyz", "healthz", "metrics", "debug/calls"):
                async with session.get(f"{url}/{page}") as answer:
                    found[page] = (answer.status, await answer.text())
        return found

    found = asyncio.run(main())
    assert [found[page] for page in ("livez", "readyz", "healthz")] == [(200, "ok")] * 3
    assert 'scheduler_pending_pods{queue="active"} 0.0' in found["metrics"][1]
    assert "process_resident_memory_bytes" in found["metrics"][1]
    assert found["debug/calls"][0] == 200
    assert found["debug/calls"][1].startswith('{"calls":[],"limiter":{"qps":')


def test_a_busy_port_is_one_line(server: Path, tmp_path: Path, scheduler: Process) -> None:
    line = next(line for line in scheduler.log.splitlines() if "health and metrics on" in line)
    port = int(line.rpartition(":")[2])
    (tmp_path / "second").mkdir()
    second = Process(server, tmp_path / "second", port)
    try:
        assert second.child.wait(timeout=20) == 1
        assert f"127.0.0.1:{port}" in second.log
        assert "choose another port" in second.log
        assert "Traceback" not in second.log
    finally:
        second.close()


def test_a_server_that_is_killed_under_the_scheduler(tmp_path: Path) -> None:
    """The scheduler outlives its server, says so in a line, and still ends as asked."""
    kubeconfig = tmp_path / "kubeconfig"
    with ServerProcess.start(services=False) as running:
        running.write_kubeconfig(kubeconfig)
        process = Process(kubeconfig, tmp_path)
        try:
            process.wait_ready()
            os.kill(running.pid, signal.SIGKILL)
            process.wait_for("watch of pods")
            assert process.end() == 0, process.log
            assert "Traceback" not in process.log
        finally:
            process.close()
