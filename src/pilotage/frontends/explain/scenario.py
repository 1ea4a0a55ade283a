"""What-ifs as values: a pod, perhaps another one than there is, and nodes, perhaps changed.

Law: a changed pod has a signature of its own, so that no answer kept for the real one is taken for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView

_AMENDED = "_amended"


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
    changed = PodInfo(msgspec.structs.replace(info.pod, spec=spec))
    return amended(changed, vars(info).get(_AMENDED, {}))


def amended(info: PodInfo, attributes: Mapping[str, Any]) -> PodInfo:
    """The pod with other values of what is computed from its spec: `requests`, `host_ports`."""
    if not attributes:
        return info
    changed = copy(info)
    known = {**vars(info).get(_AMENDED, {}), **attributes}
    signature = info.signature + repr(sorted(known.items())).encode()
    vars(changed).update(attributes, signature=signature, **{_AMENDED: known})
    return changed
