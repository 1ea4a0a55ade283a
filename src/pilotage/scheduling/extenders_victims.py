"""The preempt verb: an extender narrows whom preemption would remove, before the node is chosen.

Laws: an answer names nodes that were offered and pods that are on them now, of lower priority than the pod
that needs room; a node without a victim is none. An ignorable extender that fails is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pilotage.framework.asking import AskFailedError, Asking, Question, Victims
from pilotage.framework.settings import ExtenderSettings
from pilotage.scheduling.extenders import NamedVictims, OfferedVictims, VictimsQuery, is_interested, label
from pilotage.state.importance import by_importance
from pilotage.state.podinfo import PodInfo


class ExtenderVictims:
    """Implements `framework.asking.VictimAsker`."""

    def __init__(self, extender: ExtenderSettings) -> None:
        self._extender = extender
        self._label = label(extender, extender.preempt_verb)

    def narrow(
        self, pod: PodInfo, offered: Mapping[str, Victims], pods_on: Callable[[str], Sequence[PodInfo]]
    ) -> Asking[Mapping[str, Victims]]:
        """Raises AskFailedError."""
        extender = self._extender
        if not is_interested(extender, pod):
            return offered
        victims = {node: OfferedVictims(one.pods, one.violations) for node, one in offered.items()}
        try:
            answer = yield Question(VictimsQuery(extender, extender.preempt_verb, pod, victims), None)
            return self._read(pod, answer, offered, pods_on)
        except (AskFailedError, ValueError) as exc:
            if extender.ignorable:
                return offered
            raise AskFailedError(f"{self._label}: {exc}") from exc

    def _read(
        self,
        pod: PodInfo,
        answer: Mapping[str, NamedVictims],
        offered: Mapping[str, Victims],
        pods_on: Callable[[str], Sequence[PodInfo]],
    ) -> Mapping[str, Victims]:
        left: dict[str, Victims] = {}
        for node, named in answer.items():
            if node not in offered:
                raise ValueError(f'it names node "{node}", which was not offered')
            if named.uids:
                left[node] = Victims(_found(pod, node, named, pods_on(node)), named.violations)
            elif not self._extender.ignorable:
                raise ValueError(f'it names no victim on node "{node}"')
        return {node: left[node] for node in offered if node in left}


def _found(pod: PodInfo, node: str, named: NamedVictims, there: Sequence[PodInfo]) -> tuple[PodInfo, ...]:
    """The victims, most important first. Raises ValueError."""
    by_uid = {other.uid: other for other in there}
    found = {}
    for uid in named.uids:
        victim = by_uid.get(uid)
        if victim is None:
            raise ValueError(f'victim "{uid}" is not on node "{node}"')
        if victim.priority >= pod.priority:
            raise ValueError(f"victim {victim.key} on node {node} is not of lower priority")
        found[uid] = victim
    return tuple(by_importance(list(found.values())))
