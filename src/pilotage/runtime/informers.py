"""One reflector per watched kind, whose changes become the engine's facts.

Laws: kinds that the server does not have are left out, pods and nodes never; a change is handed on at
once, in the order in which its kind told it; while the server cannot be reached the problem is logged
now and then, not at every try.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping

from pilotage.api.decode import DecodeFailure
from pilotage.api.kinds import Kind
from pilotage.client.backoff import Backoff
from pilotage.client.decoding import Decoder, LeanDecoder
from pilotage.client.discovery import discover
from pilotage.client.errors import ApiError
from pilotage.client.known import Change, ChangeType
from pilotage.client.reflector import Reflector, ReflectorStatistics
from pilotage.client.transport import Transport, TransportError
from pilotage.runtime.watched import REQUIRED, field_selector, watched_kinds
from pilotage.scheduling.messages import Deleted, Event, Undecodable, Upserted

logger = logging.getLogger(__name__)

QUIET_SECONDS = 30.0


class Informers:
    """`on_event` gets every fact; `synced` is set when each served kind has told its first list."""

    def __init__(
        self,
        transport: Transport,
        on_event: Callable[[Event], None],
        *,
        seed: int = 0,
        decoder: Callable[[Kind], Decoder | None] = lambda _: None,
    ) -> None:
        """`decoder`: what a kind is read with, None for the views that scheduling needs."""
        self.synced = asyncio.Event()
        self._transport = transport
        self._on_event = on_event
        self._seed = seed
        self._decoder = decoder
        self._reflectors: dict[str, Reflector] = {}
        self._logged: dict[str, float] = {}  # resource -> loop time of the last line about it

    def statistics(self) -> Mapping[str, ReflectorStatistics]:
        """By resource; empty until discovery has been answered."""
        return {resource: reflector.statistics() for resource, reflector in self._reflectors.items()}

    async def run(self) -> None:
        """Never returns; cancel it to stop. Raises only what `on_event` raises, in a group."""
        self._reflectors = {kind.resource: self._reflector(kind) for kind in await self._discover()}
        async with asyncio.TaskGroup() as tasks:
            for resource, reflector in self._reflectors.items():
                tasks.create_task(reflector.run(), name=f"watch {resource}")
            for reflector in self._reflectors.values():
                await reflector.synced.wait()
            self.synced.set()

    async def _discover(self) -> tuple[Kind, ...]:
        backoff = Backoff(random.Random(f"{self._seed}/discovery"))
        while True:
            asked = 0.0
            try:
                found = await discover(self._transport, watched_kinds())
                lacking = [kind.resource for kind in found.missing]
                if not set(REQUIRED).intersection(lacking):
                    if lacking:
                        logger.info("the server has no %s: not watched", ", ".join(lacking))
                    return found.served
                problem = f"the server has no {' and no '.join(lacking)}"
            except (ApiError, TransportError) as error:
                problem = str(error)
                asked = error.retry_after if isinstance(error, ApiError) else 0.0
            self._complain("discovery", f"discovery: {problem}")
            await asyncio.sleep(backoff.next(asked))

    def _reflector(self, kind: Kind) -> Reflector:
        return Reflector(
            self._transport,
            kind,
            lambda change: self._on_event(as_event(kind.resource, change)),
            field_selector=field_selector(kind),
            decoder=self._decoder(kind) or LeanDecoder(kind),
            seed=self._seed,
            on_problem=lambda text: self._complain(kind.resource, f"watch of {text}"),
        )

    def _complain(self, about: str, text: str) -> None:
        now = asyncio.get_running_loop().time()
        is_news = now - self._logged.get(about, -QUIET_SECONDS) >= QUIET_SECONDS
        if is_news:
            self._logged[about] = now
        logger.log(logging.WARNING if is_news else logging.DEBUG, "%s", text)


def as_event(resource: str, change: Change) -> Event:
    """The engine's word for a change."""
    match change.type:
        case ChangeType.UPSERTED:
            return Upserted(resource, change.object, is_new=change.is_new)
        case ChangeType.DELETED:
            return Deleted(resource, change.object)
        case ChangeType.UNDECODABLE:
            failure: DecodeFailure = change.object
            return Undecodable(
                resource,
                failure.namespace,
                failure.name,
                failure.uid,
                failure.error,
                failure.scheduler_name,
                failure.node_name,
            )
