"""One watch per kind for all kubelets and controllers, into one cache."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from pilotage.client.known import Change, ChangeType
from pilotage.client.reflector import Reflector
from pilotage.client.transport import Transport
from pilotage.localcluster.objects import Cache, Moved, kind_of


class Informers:
    def __init__(
        self,
        transport: Transport,
        cache: Cache,
        resources: Iterable[str],
        *,
        on_moved: Callable[[Moved], None],
        on_problem: Callable[[str], None],
        seed: int = 0,
    ) -> None:
        self._cache = cache
        self._on_moved = on_moved
        self._on_problem = on_problem
        self._reflectors = [
            Reflector(
                transport,
                kind_of(resource),
                self._teller(resource),
                seed=f"{seed}/services",
                on_problem=on_problem,
            )
            for resource in resources
        ]

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run(), name=f"services watch {reflector.kind.resource}")

    async def wait_synced(self) -> None:
        for reflector in self._reflectors:
            await reflector.synced.wait()

    def _teller(self, resource: str) -> Callable[[Change], None]:
        def tell(change: Change) -> None:
            if change.type is ChangeType.UNDECODABLE:
                self._on_problem(f"{resource} {change.identity.name}: {change.object.error}")
                return
            if change.type is ChangeType.DELETED:
                moved = self._cache.told_deleted(resource, change.object)
            else:
                moved = self._cache.told(resource, change.object)
            if moved is not None:
                self._on_moved(moved)

        return tell
