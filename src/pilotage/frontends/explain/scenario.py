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


class AmendedPod(PodInfo):
    """A pod with other values of what is computed from its spec (`requests`, `host_ports`)."""

    def __init__(self, pod: Pod, amended: Mapping[str, Any]) -> None:
        super().__init__(pod)
        self.amended = dict(amended)
        signature = PodInfo(pod).signature + repr(sorted(self.amended.items())).encode()
        for name, value in {**self.amended, "signature": signature}.items():
            setattr(self, name, value)


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
    """The pod with other fields in its spec; what was amended stays amended."""
    spec = msgspec.structs.replace(info.pod.spec, **fields)
    pod = msgspec.structs.replace(info.pod, spec=spec)
    return AmendedPod(pod, info.amended) if isinstance(info, AmendedPod) else PodInfo(pod)


def amended(info: PodInfo, attributes: Mapping[str, Any]) -> PodInfo:
    """The pod with other `attributes`, on top of those that were amended before."""
    before = info.amended if isinstance(info, AmendedPod) else {}
    return AmendedPod(info.pod, {**before, **attributes})
