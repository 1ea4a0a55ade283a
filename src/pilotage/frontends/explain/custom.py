"""What somebody else's plugin says about a node, if it has a method `explain(cycle, pod, node) -> str`."""

from __future__ import annotations

from pilotage.framework.guard import PluginFailedError, guarded
from pilotage.framework.noderef import RowRef
from pilotage.frontends.explain.look import Look


def own_words(look: Look, plugin: str, row: int) -> str:
    """ "" for a plugin that has nothing to say; what it raises is told in its place."""
    instance = look.profile.plugins.get(plugin)
    explain = getattr(instance, "explain", None)
    if explain is None:
        return ""
    place = look.place(row)
    try:
        said = guarded(plugin, "explain", explain, place.cycle, look.pod, RowRef(place.view, row))
    except PluginFailedError as problem:
        return problem.status.message
    return said if isinstance(said, str) else ""
