"""A storm's faults, put before the scheduler's way to the API server.

Laws: latency hits every request; refusals hit only calls, never what a start reads; the draw is seeded and
is made once for each request.
"""

from __future__ import annotations

import random

from pilotage.api.wire import Request
from pilotage.frontends.bench.scenario import Storm
from pilotage.frontends.bench.traffic import is_call
from pilotage.testing.faults import Faults

CLIENT = "scheduler"
RETRY_AFTER = 1


def put_faults(faults: Faults, storm: Storm) -> None:
    if storm.latency:
        faults.latency(before=storm.latency, client=CLIENT)
    if storm.reject:
        draw = random.Random(storm.seed)

        def is_drawn(request: Request) -> bool:
            return is_call(request) and draw.random() < storm.reject

        faults.too_many_requests(RETRY_AFTER, client=CLIENT, where=is_drawn)
