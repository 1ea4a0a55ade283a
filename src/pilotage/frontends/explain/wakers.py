"""Which cluster events wake a pod that waits for certain plugins."""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.framework.profile import Profile
from pilotage.frontends.explain.model import Waker
from pilotage.scheduling.waiting import event_names


def wakers(profile: Profile, plugins: Iterable[str]) -> list[Waker]:
    """By plugin, in the order of names; plugins that are unknown here are woken by every event."""
    registrations = profile.registrations()
    return [Waker(name, event_names(registrations.get(name, ()))) for name in sorted(set(plugins))]
