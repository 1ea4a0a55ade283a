"""What the scheduler asked of the API server, counted: plain numbers that travel as JSON.

Laws: only calls count: no watch, no list and no discovery, which a start reads; a request that a fault
answered with 429 never reached the server, so it is sent but no bind; what is still under way is not refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from pilotage.api.wire import Request
from pilotage.testing.requestlog import Record, verb_of

_TOO_MANY = 429
_ANSWERED_WELL = range(200, 300)


@dataclass(frozen=True, slots=True)
class Traffic:
    """By pod name: `binds` that may have reached the server, and status patches `sent`."""

    requests: dict[str, int] = field(default_factory=dict)  # by kind, as "PATCH pods/status"
    refused: dict[str, int] = field(default_factory=dict)  # answers that are no success, by kind and status
    too_many: int = 0
    binds: dict[str, int] = field(default_factory=dict)
    patches: dict[str, int] = field(default_factory=dict)


def count(records: Iterable[Record]) -> Traffic:
    """Of the scheduler's requests."""
    calls = [record for record in records if is_call(record.request)]
    refused = [r for r in calls if r.finished is not None and r.status not in _ANSWERED_WELL]
    binds = (r for r in calls if r.path.endswith("/binding") and r.status != _TOO_MANY)
    patches = (r for r in calls if r.method == "PATCH" and r.path.endswith("/status"))
    return Traffic(
        requests=dict(Counter(kind_of(record) for record in calls).most_common()),
        refused=dict(Counter(f"{kind_of(r)} {r.status or 'no answer'}" for r in refused).most_common()),
        too_many=sum(record.status == _TOO_MANY for record in calls),
        binds=dict(Counter(pod_of(record.path) for record in binds)),
        patches=dict(Counter(pod_of(record.path) for record in patches)),
    )


def is_call(request: Request) -> bool:
    """Whether a dispatcher sends such a request: it is about one object, or creates one."""
    return bool(_resource_path(request.path)) and verb_of(request) not in ("list", "watch")


def kind_of(record: Record) -> str:
    """Method and resource: `POST pods/binding`, `PATCH pods/status`, `POST events`."""
    resource, *rest = _resource_path(record.path)
    return f"{record.method} {'/'.join([resource, *rest[1:2]])}"


def pod_of(path: str) -> str:
    return _resource_path(path)[1]


def _resource_path(path: str) -> list[str]:
    """[resource, name, subresource] as far as they are there."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    return rest[2:] if len(rest) > 2 and rest[0] == "namespaces" else rest
