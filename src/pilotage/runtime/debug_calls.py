"""`/debug/calls`: the API calls on their way and the limiter that lets them go, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pilotage.calls.reports import PendingCall


def calls_page(pending: Iterable[PendingCall], limiter: Mapping[str, Any]) -> bytes:
    """`{"calls": [...], "limiter": {...}}`; costs what is pending. Read by `pilotage calls`."""
    return msgspec.json.encode({"calls": [_row(call) for call in pending], "limiter": limiter})


def _row(call: PendingCall) -> dict[str, object]:
    return {
        "type": call.call_type,
        "resource": call.key.resource,
        "namespace": call.key.namespace,
        "name": call.key.name,
        "lane": call.lane.name.lower(),
        "inFlight": call.in_flight,
        "ageSeconds": round(call.age, 3),
        "tries": call.tries,
        "phase": call.phase.value,
    }
