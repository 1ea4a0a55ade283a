"""HTTP extenders, the pure half: whom a pod concerns, and what is asked and answered as values.

Laws
- Questions name pods and nodes; what goes over the wire is the business of the edge (`runtime.extenders`),
  which ends every question in time. Answers arrive with the right types, and are judged here by what they
  say.
- Ignorable extenders are asked after all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pilotage.api.pods import Container
from pilotage.framework.settings import ExtenderSettings
from pilotage.state.podinfo import PodInfo

REJECTOR = "Extender"  # any event wakes a pod that an extender rejected


@dataclass(frozen=True, slots=True)
class ExtenderQuery:
    """Base of what an extender is asked. `verb` is what follows the URL prefix."""

    extender: ExtenderSettings
    verb: str
    pod: PodInfo


@dataclass(frozen=True, slots=True)
class FilterQuery(ExtenderQuery):
    """Answered by a FilterAnswer."""

    node_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RatingQuery(ExtenderQuery):
    """Answered by a sequence of Ratings."""

    node_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BindQuery(ExtenderQuery):
    """Answered by None."""

    node: str


@dataclass(frozen=True, slots=True)
class OfferedVictims:
    pods: tuple[PodInfo, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class VictimsQuery(ExtenderQuery):
    """Answered by a mapping from node name to NamedVictims."""

    victims: Mapping[str, OfferedVictims]


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """`node_names`: who passed. The others may have a reason: node name -> text."""

    node_names: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rating:
    host: str
    score: int


@dataclass(frozen=True, slots=True)
class NamedVictims:
    uids: tuple[str, ...]
    violations: int = 0


def in_order(extenders: Iterable[ExtenderSettings]) -> list[ExtenderSettings]:
    """As they are asked: the ignorable ones last, each group as configured."""
    return sorted(extenders, key=lambda extender: extender.ignorable)


def is_interested(extender: ExtenderSettings, pod: PodInfo) -> bool:
    """Whether a container asks for, or is limited in, a resource that the extender manages."""
    managed = {resource.name for resource in extender.managed_resources}
    if not managed:
        return True
    spec = pod.pod.spec
    return any(_names(container) & managed for container in (*spec.containers, *(spec.init_containers or ())))


def _names(container: Container) -> set[str]:
    return {*(container.resources.requests or ()), *(container.resources.limits or ())}


def label(extender: ExtenderSettings, verb: str) -> str:
    """How logs and conditions name it."""
    return f'extender "{extender.url_prefix}" at {verb}'


def few(names: Sequence[str]) -> str:
    """The first of several names, for texts."""
    shown = ", ".join(f'"{name}"' for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
