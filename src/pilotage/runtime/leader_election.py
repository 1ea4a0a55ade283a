"""Leader election with a Lease: of several schedulers of one name, one decides.

Laws:
- A lease that somebody else holds is taken only when it has not changed for as long as it says, by this
  process's own clock: clocks of two machines are never compared.
- Who leads counts the renew deadline from the moment the last successful renewal was *sent*, so that it
  has stopped before the lease ends for anybody who saw that renewal.
- `is_leading` is asked of the clock each time: a process that was stopped and goes on knows at once that
  its time is over, before the next renewal could tell it.

These writes do not go through the call queue. The queue may hold a call back (rate limit, lanes, retries
after a server's pause) and sends only for who leads already, while the lease must be renewed in time or
not at all; and a renewal that waited is worse than none. So they are sent at once, by themselves.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from pilotage.api.kinds import Kind, by_resource
from pilotage.client.api import ApiClient, ApiError, Json
from pilotage.client.transport import Transport, TransportError
from pilotage.runtime.clock import Clock
from pilotage.runtime.config_validate import LeaderElection

logger = logging.getLogger(__name__)

JITTER = 0.2  # candidates ask every retry period, and up to so much of one later
REQUEST_SECONDS = 5.0
WATCHDOG_SECONDS = 20.0
_NOT_FOUND, _CONFLICT = 404, 409


class LeadershipLostError(RuntimeError):
    """The lease could not be renewed in time, or somebody else has it."""


class Elector:
    """One candidate for one lease. `identity` must be unique among all processes."""

    def __init__(
        self,
        transport: Transport,
        config: LeaderElection,
        identity: str,
        clock: Clock,
        on_leader: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`on_leader` hears of each new holder, by its identity."""
        self.config = config
        self.identity = identity
        self._api = ApiClient(transport, field_manager="")
        self._clock = clock
        self._random = random.Random(identity)
        self._on_leader = on_leader
        # The lease as last seen, and when its spec last changed to that.
        self._lease: Json | None = None
        self._seen_at = -math.inf
        # Whether it may have changed since: a write that was not answered may have been carried out.
        self._is_stale = True
        # When the last successful renewal was sent; -inf while this process does not hold the lease.
        self._renewed_at = -math.inf

    @property
    def is_leading(self) -> bool:
        """Holds the lease, and is not late with its renewal."""
        return self._clock.time() < self._renewed_at + self.config.renew_deadline

    @property
    def leader(self) -> str:
        """Who held the lease when it was last seen; "" when nobody."""
        return _holder(self._lease)

    def health(self) -> str | None:
        """What is wrong: a leader that is long past its deadline, and still here. None when all is well."""
        if self._renewed_at == -math.inf:
            return None
        late = self._clock.time() - self._renewed_at - self.config.lease_duration
        return (
            f"the lease was not renewed for {late:.0f} s beyond its end" if late > WATCHDOG_SECONDS else None
        )

    async def acquire(self) -> None:
        """Waits until this process leads. Cancel it to give up."""
        logger.info("waiting for lease %s as %s", self._place(), self.identity)
        while not await self._try(REQUEST_SECONDS):
            await asyncio.sleep(self._pause())
        logger.info("leading: lease %s acquired", self._place())
        await self._record("became leader")

    async def hold(self) -> None:
        """Renews the lease for as long as possible. Raises LeadershipLostError, never returns."""
        while True:
            left = self._renewed_at + self.config.renew_deadline - self._clock.time()
            await asyncio.sleep(max(0.0, min(self.config.retry_period, left)))
            left = self._renewed_at + self.config.renew_deadline - self._clock.time()
            if left <= 0:
                self._renewed_at = -math.inf
                raise LeadershipLostError(f"lease {self._place()} could not be renewed in time")
            if not await self._try(min(left, REQUEST_SECONDS)) and self.leader not in ("", self.identity):
                self._renewed_at = -math.inf
                raise LeadershipLostError(f"lease {self._place()} is held by {self.leader}")

    async def release(self) -> None:
        """Gives the lease back, so that another need not wait for its end. Without it, nothing happens."""
        if not self.is_leading:
            return
        self._renewed_at = -math.inf
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                if self._is_stale:
                    await self._look()
                await self._give_back()
        except (ApiError, TransportError, TimeoutError) as problem:
            logger.warning("lease %s could not be released: %s", self._place(), problem)

    async def _give_back(self) -> None:
        if self._lease is None or self.leader != self.identity:
            return
        now = _micro_time(self._clock.time())
        spec = {**self._lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        spec["renewTime"] = spec["acquireTime"] = now
        await self._api.update(_LEASES, {**self._lease, "spec": spec}, self.config.resource_namespace)
        await self._record("stopped leading")

    # -- one try

    async def _try(self, seconds: float) -> bool:
        """Acquires or renews, once. False when it was refused, not answered in time, or held by another."""
        try:
            async with asyncio.timeout(seconds):
                if self._is_stale or self.leader != self.identity:
                    await self._look()
                return self._may_take() and await self._write()
        except (ApiError, TransportError, TimeoutError) as problem:
            is_usual = isinstance(problem, ApiError) and problem.status == _CONFLICT  # another was faster
            level = logging.DEBUG if is_usual else logging.WARNING
            logger.log(level, "lease %s: %s", self._place(), str(problem) or "no answer in time")
            self._is_stale = True
            return False

    async def _look(self) -> None:
        try:
            found = await self._api.get(_LEASES, self.config.resource_name, self.config.resource_namespace)
        except ApiError as problem:
            if problem.status != _NOT_FOUND:
                raise
            self._lease, self._is_stale = None, False
            return
        self._see(found)

    def _see(self, lease: Json) -> None:
        before, self._lease, self._is_stale = self._lease, lease, False
        if before is None or before.get("spec") != lease.get("spec"):
            self._seen_at = self._clock.time()
        if _holder(before) != self.leader and self.leader:
            logger.info("lease %s is held by %s", self._place(), self.leader)
            self._on_leader(self.leader)

    def _may_take(self) -> bool:
        return self.leader in ("", self.identity) or self._clock.time() >= self._ends_at()

    def _ends_at(self) -> float:
        spec = (self._lease or {}).get("spec") or {}
        return self._seen_at + float(spec.get("leaseDurationSeconds") or self.config.lease_duration)

    async def _write(self) -> bool:
        sent_at = self._clock.time()
        namespace = self.config.resource_namespace
        if self._lease is None:
            body: Json = {"metadata": {"name": self.config.resource_name, "namespace": namespace}}
            written = await self._api.create(_LEASES, {**body, "spec": self._spec(sent_at, {})}, namespace)
        else:
            spec = self._spec(sent_at, self._lease.get("spec") or {})
            written = await self._api.update(_LEASES, {**self._lease, "spec": spec}, namespace)
        self._renewed_at = sent_at
        self._see(written)
        return True

    def _spec(self, now: float, before: Json) -> Json:
        spec = {
            **before,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self.config.lease_duration),
            "renewTime": _micro_time(now),
        }
        if before.get("holderIdentity") == self.identity:
            return spec
        transitions = (before.get("leaseTransitions") or 0) + 1 if before else 0
        return {**spec, "acquireTime": _micro_time(now), "leaseTransitions": transitions}

    def _pause(self) -> float:
        """Until the next try: at latest when the lease of the other one ends."""
        pause = self.config.retry_period * (1 + JITTER * self._random.random())
        if self.leader in ("", self.identity):
            return pause
        left = self._ends_at() - self._clock.time()
        return min(pause, left) if left > 0 else pause

    async def _record(self, what: str) -> None:
        """An event on the lease; best effort, in little time."""
        try:
            async with asyncio.timeout(min(1.0, self.config.retry_period)):
                await self._api.create(_EVENTS, self._event(what), self.config.resource_namespace)
        except (ApiError, TransportError, TimeoutError) as problem:
            logger.debug("event of the lease was not written: %s", problem)

    def _event(self, what: str) -> Json:
        now = self._clock.time()
        name, namespace = self.config.resource_name, self.config.resource_namespace
        metadata = (self._lease or {}).get("metadata") or {}
        regarding: dict[str, Any] = {
            "apiVersion": _LEASES.api_version,
            "kind": _LEASES.kind,
            "name": name,
            "namespace": namespace,
            "uid": metadata.get("uid", ""),
        }
        return {
            "metadata": {"name": f"{name}.{int(now * 1e6):x}", "namespace": namespace},
            "eventTime": _micro_time(now),
            "type": "Normal",
            "reason": "LeaderElection",
            "action": "LeaderElection",
            "note": f"{self.identity} {what}",
            "regarding": regarding,
            "reportingController": name,
            "reportingInstance": self.identity,
        }

    def _place(self) -> str:
        return f"{self.config.resource_namespace}/{self.config.resource_name}"


def _kind(resource: str) -> Kind:
    found = by_resource(resource)
    assert found is not None
    return found


_LEASES, _EVENTS = _kind("leases.coordination.k8s.io"), _kind("events.events.k8s.io")


def _holder(lease: Json | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


def _micro_time(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
