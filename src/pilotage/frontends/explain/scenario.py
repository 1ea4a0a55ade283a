"""What-ifs as values: a pod, perhaps another one than there is, and nodes, perhaps changed.

Law: a changed pod has a signature of its own, so that no answer kept for the real one is taken for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pilotage.api.pods import Pod
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView


class LessPod(PodInfo):
    """A pod that asks for less than its spec says."""

    def __init__(self, pod: Pod, requests: Mapping[str, int]) -> None:
        super().__init__(pod)
        self.requests = dict(requests)
        self.signature = PodInfo(pod).signature + repr(sorted(requests.items())).encode()


@dataclass(frozen=True, slots=True)
class Scenario:
    """`view` None: the nodes as they are."""

    pod: PodInfo
    view: NodeView | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Something that could be otherwise. `text` continues "3 nodes would do ..."; `plugin` objects to it now.

    `weight`: how many nodes are rejected for what this lifts; larger ones are tried first.
    """

    text: str
    plugin: str
    apply: Callable[[Scenario], Scenario] = field(repr=False, compare=False)
    weight: int = 0


def change_pod(change: Callable[[PodInfo], PodInfo]) -> Callable[[Scenario], Scenario]:
    def apply(scenario: Scenario) -> Scenario:
        return Scenario(change(scenario.pod), scenario.view)

    return apply


def with_spec(info: PodInfo, **fields: Any) -> PodInfo:
    """The pod with other fields in its spec; what it asks for stays as it is."""
    spec = msgspec.structs.replace(info.pod.spec, **fields)
    pod = msgspec.structs.replace(info.pod, spec=spec)
    return LessPod(pod, info.requests) if isinstance(info, LessPod) else PodInfo(pod)


def asking_for(info: PodInfo, requests: Mapping[str, int]) -> PodInfo:
    """The pod with other requests, by resource: milli-CPU, bytes, units."""
    return LessPod(info.pod, requests)
