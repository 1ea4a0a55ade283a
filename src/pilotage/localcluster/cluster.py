"""What makes an API server a cluster: simulated kubelets and controllers, over one transport."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pilotage.client.api import ApiClient
from pilotage.client.transport import Transport
from pilotage.localcluster.controllers.budgets import Budgets
from pilotage.localcluster.controllers.deployments import Deployments
from pilotage.localcluster.controllers.ephemeral import EphemeralVolumes
from pilotage.localcluster.controllers.garbage import Garbage
from pilotage.localcluster.controllers.namespaces import Namespaces
from pilotage.localcluster.controllers.plan import Controller
from pilotage.localcluster.controllers.podgc import QUARANTINE_SECONDS, LostPods
from pilotage.localcluster.controllers.replicasets import ReplicaSets
from pilotage.localcluster.controllers.runner import Clock, Runner
from pilotage.localcluster.controllers.statefulsets import StatefulSets
from pilotage.localcluster.controllers.volumes import VolumeClaims, VolumePhases
from pilotage.localcluster.informers import Informers
from pilotage.localcluster.kubelet.nodes import NodeKubelets, NodeLeases
from pilotage.localcluster.kubelet.pods import PodKubelets
from pilotage.localcluster.kubelet.resizes import ResizeKubelets
from pilotage.localcluster.objects import TYPED, WHOLE, Cache, Moved
from pilotage.runtime.clock import RealClock

RESOURCES = (*WHOLE, *TYPED, "pods", "nodes")
SWEEP_SECONDS = 30.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """`stop_seconds` None: a deleted pod's containers use their whole grace period.

    `external_provisioners`: provisioners of storage classes for which somebody else makes the volumes.
    """

    start_seconds: float = 0.5
    stop_seconds: float | None = 1.0
    resize_seconds: float = 0.5
    kubelets: bool = True
    controllers: bool = True
    leases: bool = True
    lost_pod_seconds: float = QUARANTINE_SECONDS
    external_provisioners: tuple[str, ...] = ()


class ClusterServices:
    """`run(stop)`, or `start()` and `close()`. Watches first; nothing is written before all are synced."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock | None = None,
        *,
        settings: ServiceSettings | None = None,
        seed: int = 0,
        on_problem: Callable[[str], None] | None = None,
    ) -> None:
        self.cache = Cache()
        self._clock = clock or RealClock()
        self._on_problem = on_problem or _LOG.info
        client = ApiClient(transport, field_manager="")  # unnamed: no managedFields to keep
        self._informers = Informers(
            transport, self.cache, RESOURCES, on_moved=self._moved, on_problem=self._on_problem, seed=seed
        )
        self._runners = [
            Runner(
                controller,
                self.cache,
                client,
                self._clock,
                on_moved=self._moved,
                on_problem=self._on_problem,
                seed=seed,
            )
            for controller in _controllers(settings or ServiceSettings())
        ]
        self._task: asyncio.Task[None] | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set."""
        self.start()
        try:
            await stop.wait()
        finally:
            await self.close()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="cluster-services")

    async def wait_synced(self) -> None:
        """Until the first lists are in."""
        await self._informers.wait_synced()

    async def close(self) -> None:
        """Stops everything; raises what a service died of."""
        task, self._task = self._task, None
        if task is None:
            return
        if task.done():
            task.result()
        task.cancel()
        await asyncio.wait([task])

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="services watches")
            await self.wait_synced()
            for runner in self._runners:
                group.create_task(runner.run(), name=runner.name)
            group.create_task(self._sweep(), name="services sweep")

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for moved in self.cache.forget_unconfirmed(self._clock.time()):
                self._moved(moved)

    def _moved(self, moved: Moved) -> None:
        for runner in self._runners:
            runner.notify(moved)


def _controllers(settings: ServiceSettings) -> Iterable[Controller]:
    if settings.kubelets:
        nodes = NodeKubelets()
        yield nodes
        yield PodKubelets(
            nodes.addresses, start_seconds=settings.start_seconds, stop_seconds=settings.stop_seconds
        )
        yield ResizeKubelets(resize_seconds=settings.resize_seconds)
        if settings.leases:
            yield NodeLeases()
    if settings.controllers:
        yield ReplicaSets()
        yield Deployments()
        yield StatefulSets()
        yield Budgets()
        yield EphemeralVolumes()
        yield VolumeClaims(settings.external_provisioners)
        yield VolumePhases()
        yield Garbage()
        yield Namespaces()
        yield LostPods(settings.lost_pod_seconds)
