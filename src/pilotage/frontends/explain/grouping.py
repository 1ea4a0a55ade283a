"""Nodes with the same reason, put together: thousands of nodes have a handful of reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pilotage.frontends.explain.model import Detail, Rejection
from pilotage.frontends.explain.plugins import EXPLANATIONS, PluginExplanation

_PLAIN = PluginExplanation()


@dataclass(frozen=True, slots=True)
class Kind:
    """Nodes that a plugin rejects for the same reasons with like numbers."""

    text: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that a plugin rejects for the same reasons; `kinds`, the largest first, part them."""

    plugin: str
    reasons: tuple[str, ...]
    may_preempt: bool
    kinds: tuple[Kind, ...]

    @property
    def size(self) -> int:
        return sum(len(kind.nodes) for kind in self.kinds)


def groups(rejections: Iterable[Rejection]) -> list[Group]:
    """The largest first."""
    found: dict[tuple[str, tuple[str, ...], bool], list[Rejection]] = {}
    for rejection in rejections:
        key = (rejection.plugin, rejection.reasons, rejection.may_preempt)
        found.setdefault(key, []).append(rejection)
    made = [Group(*key, _kinds(key[0], members)) for key, members in found.items()]
    return sorted(made, key=lambda group: -group.size)


def _kinds(plugin: str, members: Sequence[Rejection]) -> tuple[Kind, ...]:
    by_common: dict[str, list[Rejection]] = {}
    for rejection in members:
        by_common.setdefault(rejection.detail.common, []).append(rejection)
    made = [_kind(plugin, alike) for alike in by_common.values()]
    return tuple(sorted(made, key=lambda kind: -len(kind.nodes)))


def _kind(plugin: str, alike: Sequence[Rejection]) -> Kind:
    details: list[Detail] = [rejection.detail for rejection in alike]
    text = EXPLANATIONS.get(plugin, _PLAIN).summary(details)
    return Kind(text, tuple(rejection.node for rejection in alike))
