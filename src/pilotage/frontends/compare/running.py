"""Scenarios one after the other, each decided by both schedulers on the same objects, made anew for each.

Law: a scenario whose verdicts differ is played once more, slower, before it is told: a scheduler may not have
seen the last object when the pod came.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from pilotage.client.api import ApiClient
from pilotage.framework.registry import Registry
from pilotage.framework.settings import ProfileSettings
from pilotage.frontends.compare.judging import Agreement, Judgement, judge
from pilotage.frontends.compare.stage import Stage
from pilotage.frontends.compare.watching import Verdict, Watch
from pilotage.frontends.replay.scenarios import Scenario

SLOWER = 5.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: from the last object to the pod, without news until a refusal counts, and in all."""

    settle: float = 0.2
    quiet: float = 0.4
    timeout: float = 15.0

    def slower(self) -> Pace:
        return Pace(self.settle * SLOWER, self.quiet * SLOWER, self.timeout * 2)


class Comparison:
    """`names`: the two schedulerNames. Both must run on the client's cluster."""

    def __init__(
        self,
        client: ApiClient,
        names: tuple[str, str],
        settings: ProfileSettings,
        registry: Registry,
        pace: Pace | None = None,
    ) -> None:
        self._client = client
        self._names = names
        self._settings = settings
        self._registry = registry
        self._pace = pace or Pace()
        self._stage = Stage(client)

    async def run(self, scenarios: Sequence[Scenario]) -> AsyncIterator[Judgement]:
        """Raises StageError, ApiError, TransportError; what was created is removed all the same."""
        await self._stage.check()
        for scenario in scenarios:
            judgement = await self._judged(scenario, self._pace)
            if judgement.agreement is Agreement.DIFFERENT:
                judgement = await self._judged(scenario, self._pace.slower())
            yield judgement

    async def _judged(self, scenario: Scenario, pace: Pace) -> Judgement:
        first, second = [await self._verdict(scenario, name, pace) for name in self._names]
        return judge(scenario, first, second, self._settings, self._registry)

    async def _verdict(self, scenario: Scenario, scheduler: str, pace: Pace) -> Verdict:
        meta = scenario.pod["metadata"]
        namespace = meta.get("namespace", "default")
        watch = Watch(self._client, namespace, meta["name"], pace.quiet, pace.timeout)
        try:
            await self._stage.set_up(scenario)
            await asyncio.sleep(pace.settle)
            async with watch.running():
                await self._stage.create_pod(scenario.pod, scheduler)
                return await watch.verdict()
        finally:
            await asyncio.shield(self._stage.clear())
