"""A storm in virtual time: the whole scheduler and the embedded server in this process; no CPU is counted."""

from __future__ import annotations

from pilotage.client.api import ApiClient
from pilotage.framework.settings import Settings
from pilotage.frontends.bench import objects
from pilotage.frontends.bench.driving import Progress, create, drive
from pilotage.frontends.bench.faultsetting import CLIENT, put_faults
from pilotage.frontends.bench.objects import Place
from pilotage.frontends.bench.report import Report, make_report
from pilotage.frontends.bench.scenario import Storm
from pilotage.frontends.bench.settings import settings_for
from pilotage.frontends.bench.traffic import count
from pilotage.testing.harness import Harness

_HISTORY = 200_000
PLACE = Place("virtual")


def run_virtual(
    storm: Storm, timeout: float, show: Progress = lambda times: None, settings: Settings | None = None
) -> Report:
    """Checks the harness's invariants at the end (AssertionError: a bug)."""
    h = Harness(
        seed=storm.seed,
        settings=settings or settings_for(storm),
        services=None,
        scheduler=False,
        history=_HISTORY,
    )
    with h:
        client = ApiClient(h.server.transport(h.faults, "bench"), field_manager="bench")
        h.do(create(client, [objects.namespace(PLACE)]))
        h.do(create(client, objects.nodes(storm, PLACE)))
        put_faults(h.faults, storm)
        h.start_scheduler()
        h.do(h.scheduler.ready.wait())
        times = h.do(drive(client, storm, PLACE, timeout, show))
        traffic = count(h.requests(client=CLIENT))
    return make_report(storm, times, traffic, place="virtual time")
