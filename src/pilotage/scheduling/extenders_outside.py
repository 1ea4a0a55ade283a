"""Everyone outside who has a say in decisions, made from the configured extenders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pilotage.framework.asking import AsksAboutVictims, VictimAsker
from pilotage.framework.profile import Profile
from pilotage.framework.settings import ExtenderSettings
from pilotage.scheduling.askers import Asker, Rater
from pilotage.scheduling.extenders import in_order
from pilotage.scheduling.extenders_binding import ExtenderBinder, Send
from pilotage.scheduling.extenders_filter import ExtenderFilter
from pilotage.scheduling.extenders_rating import ExtenderRater
from pilotage.scheduling.extenders_victims import ExtenderVictims


@dataclass(frozen=True, slots=True)
class Outside:
    askers: tuple[Asker, ...] = ()
    raters: tuple[Rater, ...] = ()
    victim_askers: tuple[VictimAsker, ...] = ()
    binders: tuple[ExtenderBinder, ...] = ()

    def meet(self, profiles: Mapping[str, Profile]) -> None:
        """Introduces those who have a say in preemption to the plugins that preempt."""
        plugins = (plugin for profile in profiles.values() for plugin in profile.plugins.values())
        for plugin in plugins if self.victim_askers else ():
            if isinstance(plugin, AsksAboutVictims):
                plugin.use_victim_askers(self.victim_askers)


def outside_of(extenders: Sequence[ExtenderSettings], send: Send | None) -> Outside:
    """`send` carries the queries of binders; without it every such bind fails."""
    ordered = in_order(extenders)
    return Outside(
        tuple(ExtenderFilter(one) for one in ordered if one.filter_verb),
        tuple(ExtenderRater(one) for one in ordered if one.prioritize_verb),
        tuple(ExtenderVictims(one) for one in ordered if one.preempt_verb),
        tuple(ExtenderBinder(one, send or _nobody) for one in ordered if one.bind_verb),
    )


async def _nobody(_: object) -> None:
    raise LookupError("nobody is configured to ask it")
