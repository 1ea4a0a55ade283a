"""The extender of the guide and `pilotage up --config`, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clikit import Running, pilotage
from clusterkit import eventually
from pilotage.testing import builders as b

pytestmark = [pytest.mark.network, pytest.mark.slow]

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "extenders.md"


def code_of(language: str) -> str:
    return GUIDE.read_text().partition(f"```{language}\n")[2].partition("```")[0]


@pytest.fixture
def extender() -> Iterator[ThreadingHTTPServer]:
    names: dict[str, Any] = {"__name__": "guide"}
    exec(code_of("python"), names)  # noqa: S102  # our own document

    class Quiet(names["Extender"]):  # type: ignore[misc]  # made by the line above
        def log_message(self, *_: object) -> None:
            """Nothing on the terminal of the tests."""

    handler: type[BaseHTTPRequestHandler] = Quiet
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_the_guide_over_http(tmp_path: Path, extender: ThreadingHTTPServer) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(code_of("yaml").replace("8888", str(extender.server_port)))
    running = Running(tmp_path, "up", "--nodes", "0", "--config", config)
    try:
        running.wait_for("ready\n")
        broken = {"maintenance": "disk"}
        nodes = [b.node("n1", labels=broken, kubelet=False), b.node("n2", kubelet=False)]
        nodes += [b.node("n3", labels={"quiet": "10"}, kubelet=False)]
        apply(tmp_path, nodes[0], b.pod("waits", cpu=1))
        eventually(
            lambda: (
                "0/1 nodes are available: 1 node(s) were under maintenance."
                in pilotage(tmp_path, "get", "events").stdout
            ),
            "the reason of the extender was told",
        )
        apply(tmp_path, *nodes[1:])
        eventually(lambda: node_of(tmp_path, "waits") != "", "the pod was placed")
        apply(tmp_path, b.pod("web", cpu=1))
        eventually(lambda: node_of(tmp_path, "web") == "n3", "the pod is where it is quiet")
    finally:
        running.kill()


def apply(home: Path, *objects: dict[str, Any]) -> None:
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    done = pilotage(home, "apply", "-f", "-", stdin=manifest)
    assert done.returncode == 0, done.stderr


def node_of(home: Path, pod: str) -> str:
    found = json.loads(pilotage(home, "get", "pod", pod, "-o", "json").stdout)
    return str(found["spec"].get("nodeName", ""))
