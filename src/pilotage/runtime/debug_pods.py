"""One pod as the running scheduler sees it, for `/debug/pods/<namespace>/<name>` and `pilotage explain`.

Fields are documented in docs/reference/explain.md: they are added, never renamed or removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from pilotage.calls.reports import PendingCall
from pilotage.scheduling.engine import Engine
from pilotage.scheduling.transitions import Position
from pilotage.scheduling.waiting import Waiting

_QUEUES: Final = {
    Position.ACTIVE: "active",
    Position.BACKOFF: "backoff",
    Position.ERROR_BACKOFF: "backoff",
    Position.UNSCHEDULABLE: "unschedulable",
    Position.GATED: "gated",
    Position.IN_FLIGHT: "inFlight",
}
Json = dict[str, Any]


def pod_page(engine: Engine, calls: Iterable[PendingCall], namespace: str, name: str) -> bytes | None:
    """JSON; None for a pod that the scheduler does not know."""
    pod = engine.cluster.pod_by_key(f"{namespace}/{name}")
    if pod is None:
        return None
    waiting = engine.waiting(pod.uid)
    own = [c for c in calls if (c.key.resource, c.key.namespace, c.key.name) == ("pods", namespace, name)]
    page = {
        "namespace": namespace,
        "name": name,
        "uid": pod.uid,
        "schedulerName": pod.pod.spec.scheduler_name,
        "queue": _QUEUES[waiting.position] if waiting is not None else _outside(engine, pod.uid),
        "node": engine.cluster.node_of(pod.uid) or None,
        "nominatedNode": engine.cluster.nominations.node_of(pod.uid) or None,
        **_waiting(waiting),
        "calls": [{"type": c.call_type, "inFlight": c.in_flight, "tries": c.tries} for c in own],
        "story": [{"time": _time(e.time), "text": e.text} for e in engine.story(pod.uid)],
    }
    return msgspec.json.encode(page)


def _outside(engine: Engine, uid: str) -> str:
    """Where a pod is that is in no queue."""
    pod = engine.cluster.pod(uid)
    assert pod is not None
    if pod.is_bound:
        return "bound"
    if engine.cluster.is_assumed(uid):
        return "binding"
    return "notOurs" if pod.pod.spec.scheduler_name not in engine.profiles else "none"


def _waiting(waiting: Waiting | None) -> Json:
    if waiting is None:
        return {
            "attempts": None,
            "backoffUntil": None,
            "nextRetry": None,
            "gate": None,
            "waitsOn": [],
            "wokenBy": [],
        }
    gate = {"plugin": waiting.gated_by, "message": waiting.gate_message} if waiting.gated_by else None
    return {
        "attempts": waiting.attempts,
        "backoffUntil": _time(waiting.backoff_until),
        "nextRetry": _time(waiting.next_retry),
        "gate": gate,
        "waitsOn": list(waiting.waits_on),
        "wokenBy": [{"plugin": p, "events": list(events)} for p, events in waiting.woken_by.items()],
    }


def _time(seconds: float | None) -> str | None:
    """RFC 3339 with milliseconds."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
