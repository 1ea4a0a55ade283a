"""Parts of the metrics on their own: labels of events, the measured transport, documented rows."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from metricrows import COMMON, OWN, ROWS, Row
from pilotage.api.decode import convert_object
from pilotage.api.kinds import by_resource
from pilotage.api.wire import Request, Response
from pilotage.client.transport import Stream, TransportError
from pilotage.runtime.figures import Figures, exponential
from pilotage.runtime.metrics_events import event_label
from pilotage.runtime.metrics_rest import RestFigures
from pilotage.scheduling.messages import Deleted, Event, Tick, Upserted

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


def made(resource: str, **spec: str) -> object:
    kind = by_resource(resource)
    assert kind is not None
    tree = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "x", "namespace": "ns", "uid": "u"},
        "spec": {"containers": [], **spec},
    }
    return convert_object(kind, tree)


def upserted(resource: str, *, is_new: bool = False, **spec: str) -> Event:
    return Upserted(resource, made(resource, **spec), is_new=is_new)  # type: ignore[arg-type]  # any view


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (upserted("pods", is_new=True), "UnschedulablePodAdd"),
        (upserted("pods", nodeName="n"), "AssignedPodUpdate"),
        (Deleted("pods", made("pods", nodeName="n")), "AssignedPodDelete"),  # type: ignore[arg-type]
        (upserted("nodes", is_new=True), "NodeAdd"),
        (upserted("persistentvolumeclaims"), "PersistentVolumeClaimUpdate"),
        (upserted("replicasets.apps"), ""),
        (Tick(), ""),
    ],
)
def test_event_labels(event: Event, label: str) -> None:
    assert event_label(event) == label


class Server:
    """Answers 201 to POST, and never to anything else."""

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        if request.method == "POST":
            return Response(201, b"four")
        raise TransportError("gone", sent=True)

    async def stream(self, request: Request) -> Stream:
        raise TransportError("gone", sent=False)

    async def close(self) -> None: ...


def shown(figures: Figures) -> str:
    class Collector:
        def collect(self) -> object:
            return figures.families()

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())  # type: ignore[arg-type]  # a collector by its one method
    return generate_latest(registry).decode()


def test_the_measured_transport_changes_nothing_and_counts_all() -> None:
    figures = RestFigures()
    transport = figures.transport(Server(), lambda: "h:1")

    async def use() -> None:
        answer = await transport.request(Request("POST", "/x", body=b"body of ten"))
        assert (answer.status, answer.body) == (201, b"four")
        with pytest.raises(TransportError, match="gone"):
            await transport.request(Request("GET", "/x"))
        with pytest.raises(TransportError, match="gone"):
            await transport.stream(Request("GET", "/x"))
        await transport.close()

    asyncio.run(use())
    text = shown(figures)
    assert 'rest_client_requests_total{code="201",host="h:1",method="POST"} 1.0' in text
    assert 'rest_client_requests_total{code="<error>",host="h:1",method="GET"} 2.0' in text
    assert 'rest_client_request_duration_seconds_count{host="h:1",verb="GET"} 1.0' in text
    assert 'rest_client_request_size_bytes_sum{host="h:1",verb="POST"} 11.0' in text
    assert 'rest_client_response_size_bytes_count{host="h:1",verb="GET"}' not in text


def test_bucket_bounds_are_multiplied_one_by_one() -> None:
    bounds = exponential(0.00001, 1.5, 20)
    assert len(bounds) == 20
    value = 0.00001
    for bound in bounds:
        assert bound == value
        value *= 1.5


def documented() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """name -> type, labels, state, from the tables of the page."""
    found = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|", PAGE.read_text(), re.M)
    return {
        name: (kind, tuple(re.findall(r"`(\w+)`", labels)), state.strip())
        for name, kind, labels, _, state in found
    }


@pytest.mark.parametrize("row", [*ROWS, *COMMON, *OWN], ids=lambda row: row.name)
def test_every_row_is_documented(row: Row) -> None:
    name = row.name if row in (*COMMON, *OWN) else f"scheduler_{row.name}"
    kind, labels, state = documented()[name]
    assert (kind, set(labels)) == (row.type, set(row.labels))
    assert state.startswith("open") == row.open


def test_the_page_has_no_other_rows() -> None:
    names = {f"scheduler_{row.name}" for row in ROWS} | {row.name for row in (*COMMON, *OWN)}
    assert set(documented()) == names
