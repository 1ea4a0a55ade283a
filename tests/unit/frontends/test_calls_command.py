"""`pilotage calls` against a page like a scheduler's: rows, totals, limiter, filters, faults (A14)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from click.testing import CliRunner

from pilotage.calls.reports import PendingCall
from pilotage.calls.types import Lane, Phase
from pilotage.framework.calls import ObjectKey
from pilotage.frontends.cli import calls as command
from pilotage.frontends.cli.calls import calls
from pilotage.runtime.debug_calls import calls_page

LIMITER = {
    "qps": 50.0,
    "burst": 100,
    "tokens": 7,
    "accepted": 0.5,
    "shares": {"bind": 1.0, "status": 0.25, "event": 0.1},
}


def key(name: str) -> ObjectKey:
    return ObjectKey("pods", "ns", name, f"uid-{name}")


PENDING = [
    PendingCall("pod_status_patch", key("young"), Lane.STATUS, False, 0.5, 0, Phase.SEND),
    PendingCall("pod_status_patch", key("old"), Lane.STATUS, False, 61.25, 3, Phase.READ),
    PendingCall("pod_binding", key("bound"), Lane.BIND, True, 0.02, 1, Phase.SEND),
]


class Page(BaseHTTPRequestHandler):
    body = b""
    status = 200

    def do_GET(self) -> None:  # the name that http.server calls
        self.send_response(self.status if self.path == "/debug/calls" else 404)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def page() -> Iterator[tuple[type[Page], str]]:
    handler = type("Handler", (Page,), {"body": calls_page(PENDING, LIMITER)})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield handler, f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def ask(address: str, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(calls, ["--scheduler", address, *options])
    return result.exit_code, result.output


@pytest.mark.network
def test_the_table(page: tuple[type[Page], str]) -> None:
    code, text = ask(page[1])
    assert code == 0
    assert text.splitlines() == [
        "2 waiting, 1 in flight",
        "  bind: pod_binding 0 waiting, 1 in flight",
        "  status: pod_status_patch 2 waiting, 0 in flight",
        "limiter: 50 requests/s, 7 of 100 tokens; the server accepts 50%",
        "slowed down: status 25%, event 10% of the rate",
        "",
        "LANE     TYPE               OBJECT          STATE       AGE     TRIES   PHASE",
        "bind     pod_binding        pods ns/bound   in flight   0.0s    1       send",
        "status   pod_status_patch   pods ns/old     waiting     61.2s   3       read",
        "status   pod_status_patch   pods ns/young   waiting     0.5s    0       send",
    ]


@pytest.mark.network
def test_filters_and_limit(page: tuple[type[Page], str]) -> None:
    assert "pod_binding" not in ask(page[1], "--lane", "status")[1]
    assert ask(page[1], "--type", "pod_binding")[1].startswith("0 waiting, 1 in flight\n")
    text = ask(page[1], "--limit", "1", "--lane", "status")[1]
    assert text.startswith("2 waiting")
    assert "ns/young" not in text
    assert text.endswith("... and 1 more (--limit 0 shows all)\n")
    assert "ns/young" in ask(page[1], "--limit", "0")[1]


@pytest.mark.network
def test_json(page: tuple[type[Page], str]) -> None:
    found = json.loads(ask(page[1], "-o", "json", "--lane", "bind")[1])
    assert found["limiter"] == LIMITER
    assert [row["name"] for row in found["calls"]] == ["bound"]


@pytest.mark.network
def test_watch_until_interrupted(page: tuple[type[Page], str], monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(command.time, "sleep", sleep)
    _, text = ask(page[1], "--watch", "--every", "3")
    assert text.count("2 waiting, 1 in flight") == 2
    assert waits == [3.0, 3.0]


@pytest.mark.network
def test_faults_are_one_line(page: tuple[type[Page], str]) -> None:
    handler, address = page
    handler.body = b"[]"
    assert "no answer" in ask(address)[1]
    handler.body = b"{}"
    assert "what answers there has no list of API calls" in ask(address)[1]
    handler.status = 500
    assert "it answered 500" in ask(address)[1]
    code, text = ask("127.0.0.1:1")
    assert code == 1
    assert "--scheduler 127.0.0.1:1: no answer:" in text
    assert ask(address, "--lane", "fast")[0] == 2


def test_nothing_pending_and_no_limit() -> None:
    assert list(command.lines([], {}, 50)) == ["0 waiting, 0 in flight"]
    unlimited = {"qps": 0, "burst": 0, "tokens": None, "accepted": 1.0, "shares": {}}
    assert list(command.lines([], unlimited, 50))[1] == "limiter: no limit; the server accepts 100%"
