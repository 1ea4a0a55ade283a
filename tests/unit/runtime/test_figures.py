"""Figures as Prometheus' text format shows them, and logs as lines."""

from __future__ import annotations

import io
import json
import logging
import sys

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from pilotage.runtime.clock import RealClock
from pilotage.runtime.figures import Counter, Histogram, exponential, gauge
from pilotage.runtime.logging_setup import LogFormat, set_up_logging


def shown(*families: object) -> list[str]:
    class Collector:
        def collect(self) -> object:
            return families

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())  # type: ignore[arg-type]  # a collector by its one method
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_exponential_bounds() -> None:
    assert exponential(0.001, 2, 4) == (0.001, 0.002, 0.004, 0.008)


def test_counter() -> None:
    counter = Counter("hits", "Hits.", "result")
    counter.add("good")
    counter.add("good", by=2)
    assert shown(counter.family()) == ['hits_total{result="good"} 3.0']
    assert shown(Counter("none", "None.").family()) == ["none_total 0.0"]


def test_histogram_counts_up_to_and_including_a_bound() -> None:
    histogram = Histogram("took", "Took.", (1.0, 2.0), "who")
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value, "me")
    assert histogram.count("me") == 4
    assert shown(histogram.family()) == [
        'took_bucket{le="1.0",who="me"} 2.0',
        'took_bucket{le="2.0",who="me"} 3.0',
        'took_bucket{le="+Inf",who="me"} 4.0',
        'took_count{who="me"} 4.0',
        'took_sum{who="me"} 12.0',
    ]


def test_gauge() -> None:
    assert shown(gauge("pods", "Pods.", "queue", {"active": 3})) == ['pods{queue="active"} 3.0']


@pytest.fixture
def _root_logger() -> object:
    root, ours = logging.getLogger(), logging.getLogger("pilotage")
    before = (root.handlers[:], root.level, ours.level)
    yield
    root.handlers[:], root.level, ours.level = before[0], before[1], before[2]


@pytest.mark.usefixtures("_root_logger")
class TestLogs:
    def lines(self, log_format: LogFormat) -> list[str]:
        stream = io.StringIO()
        set_up_logging(log_format, stream=stream)
        logger = logging.getLogger("pilotage.runtime.x")
        logger.info("bound %s", "a/b")
        logger.debug("not shown")
        logging.getLogger("aiohttp").info("not shown either")
        logger.warning("Authorization: Bearer abcdefgh12345678")
        try:
            raise ValueError("bad")
        except ValueError:
            logger.error("failed", exc_info=sys.exc_info())
        return stream.getvalue().splitlines()

    def test_text(self) -> None:
        lines = self.lines(LogFormat.TEXT)
        assert lines[0].startswith("I")
        assert lines[0].endswith(" runtime.x] bound a/b")
        assert lines[1].endswith("runtime.x] Authorization: Bearer (hidden)")
        assert lines[2].endswith("runtime.x] failed")
        assert lines[-1] == "ValueError: bad"

    def test_json(self) -> None:
        lines = [json.loads(line) for line in self.lines(LogFormat.JSON)]
        assert len(lines) == 3
        assert lines[0]["level"] == "info"
        assert lines[0]["logger"] == "pilotage.runtime.x"
        assert lines[0]["msg"] == "bound a/b"
        assert "hidden" in lines[1]["msg"]
        assert "ValueError: bad" in lines[2]["msg"]


def test_the_real_clock_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, steady = [1000.0], [50.0]
    monkeypatch.setattr("pilotage.runtime.clock.time.time", lambda: wall[0])
    monkeypatch.setattr("pilotage.runtime.clock.time.monotonic", lambda: steady[0])
    clock = RealClock()
    assert clock.time() == 1000.0
    wall[0], steady[0] = 400.0, 51.0  # set back
    assert clock.time() == 1001.0
    wall[0], steady[0] = 5000.0, 52.0  # was asleep
    assert clock.time() == 5000.0
    wall[0], steady[0] = 4999.0, 53.0
    assert clock.time() == 5001.0
