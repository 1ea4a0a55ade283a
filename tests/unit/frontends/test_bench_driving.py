"""The measuring client when its watch breaks: it goes on from where it was, or says why it cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotage.client.api import ApiClient, ApiError
from pilotage.frontends.bench.driving import create, drive
from pilotage.frontends.bench.objects import Place, namespace, nodes
from pilotage.frontends.bench.podtimes import PodTimes
from pilotage.frontends.bench.scenario import PRESETS, STORM
from pilotage.frontends.bench.settings import settings_for
from pilotage.testing.faults import Gone
from pilotage.testing.harness import Harness

TINY = replace(PRESETS[STORM], nodes=1, bad=10, good=10, rate=5.0, delay=1.0)
PLACE = Place("r")


def driven(h: Harness) -> PodTimes:
    client = ApiClient(h.server.transport(h.faults, "bench"))
    h.do(create(client, [namespace(PLACE)]))
    h.do(create(client, nodes(TINY, PLACE)))
    h.run_for(1)
    return h.do(drive(client, TINY, PLACE, 60.0, lambda times: None))


def test_a_watch_that_breaks_is_opened_again() -> None:
    with Harness(services=None, settings=settings_for(TINY)) as h:
        h.faults.cut_watch_after(3, client="bench", times=5)
        times = driven(h)
        assert times.is_done(TINY)
        assert len(times.created) == 20
        assert len(h.requests(client="bench", verb="watch")) == 6


@pytest.mark.parametrize("form", [Gone.STATUS, Gone.EVENT])
def test_a_watch_that_cannot_go_on_ends_the_run(form: Gone) -> None:
    with Harness(services=None, settings=settings_for(TINY)) as h:
        h.faults.cut_watch_after(3, client="bench", times=1)
        h.faults.gone(form, client="bench", skip=1, times=1)
        with pytest.raises(ApiError, match="too old"):
            driven(h)


def test_nobody_decides() -> None:
    with Harness(services=None, scheduler=False) as h:
        times = driven(h)
        assert times.bind_seconds() == []
        assert h.now == pytest.approx(1 + 1 + 9 / 5 + 60, abs=0.2), "the timeout counts from the last pod"
