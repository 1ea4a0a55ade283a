"""Two verdicts on one pod compared; and all pods of a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from pilotage.framework.scoring import Scores
from pilotage.frontends.diff.verdict import Verdict, judge, place
from pilotage.scheduling.engine import Engine
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Int64, Rows

_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """Nodes that both can use and that a plugin scores differently: name -> weighted scores of A and B.

    A plugin that did not score counts as 0.
    """

    plugin: str
    nodes: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class PodDiff:
    """What differs for one pod; everything is empty where both agree."""

    namespace: str
    name: str
    nodes: tuple[str, str]
    winners: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    scores: tuple[ScoreChange, ...] = ()
    messages: tuple[str, str] | None = None
    preemption: tuple[tuple[str, ...], tuple[str, ...]] | None = None  # node, then victims

    @property
    def is_feasible_different(self) -> bool:
        return bool(self.only_a or self.only_b)

    @property
    def is_different(self) -> bool:
        parts = (self.winners, self.only_a, self.only_b, self.scores, self.messages, self.preemption)
        return any(parts)


@dataclass
class Comparison:
    """`placed`: pods that each side found a node for; `used`: nodes that it put them on."""

    decided: int = 0
    differences: list[PodDiff] = field(default_factory=list)
    placed: tuple[int, int] = (0, 0)
    used: tuple[int, int] = (0, 0)


def pending_pods(engines: tuple[Engine, Engine]) -> list[PodInfo]:
    """Pods that wait and that a profile of either side is for, the oldest first."""
    return _in_order(
        [pod for pod in engines[0].cluster.pods() if not pod.is_bound and _is_ours(engines, pod)]
    )


def is_scheduled_by(names: set[str], pod: PodInfo) -> bool:
    """Whether a scheduler of one of these names put it where it is: not what a kubelet started by itself."""
    annotations = pod.pod.metadata.annotations or {}
    return pod.pod.spec.scheduler_name in names and _MIRROR not in annotations


def _is_ours(engines: tuple[Engine, Engine], pod: PodInfo) -> bool:
    names = {name for engine in engines for name in engine.profiles}
    return is_scheduled_by(names, pod) and not pod.is_terminating


def _in_order(pods: list[PodInfo]) -> list[PodInfo]:
    return sorted(pods, key=lambda pod: (pod.pod.metadata.creation_timestamp or "", pod.key))


def compare(engines: tuple[Engine, Engine], pods: Sequence[PodInfo], *, in_sequence: bool) -> Comparison:
    """`in_sequence`: each pod is counted on its node before the next one is decided; else each sees the
    cluster as it is."""
    comparison = Comparison()
    nodes: tuple[list[str], list[str]] = ([], [])
    for number, pod in enumerate(pods):
        a, b = (judge(engine, pod, number) for engine in engines)
        if in_sequence:
            for engine, verdict in zip(engines, (a, b), strict=True):
                place(engine, pod, verdict)
        difference = differ(engines[0], pod, a, b)
        comparison.decided += 1
        if difference.is_different:
            comparison.differences.append(difference)
        for found, verdict in zip(nodes, (a, b), strict=True):
            found += [verdict.node] if verdict.node else []
    comparison.placed = (len(nodes[0]), len(nodes[1]))
    comparison.used = (len(set(nodes[0])), len(set(nodes[1])))
    return comparison


def differ(engine: Engine, pod: PodInfo, a: Verdict, b: Verdict) -> PodDiff:
    """`engine`: either one, for the names of nodes."""
    names = engine.cluster.nodes.name
    preemption = ((a.preempted, *a.victims), (b.preempted, *b.victims))
    return PodDiff(
        pod.namespace,
        pod.name,
        (a.node, b.node),
        winners=(a.winners, b.winners) if set(a.winners) != set(b.winners) else None,
        only_a=tuple(names(row) for row in np.setdiff1d(a.rows, b.rows).tolist()),
        only_b=tuple(names(row) for row in np.setdiff1d(b.rows, a.rows).tolist()),
        scores=tuple(_score_changes(engine, a, b)),
        messages=(a.message, b.message) if a.message != b.message else None,
        preemption=preemption if preemption[0] != preemption[1] else None,
    )


def _score_changes(engine: Engine, a: Verdict, b: Verdict) -> Iterator[ScoreChange]:
    """On nodes that both scored."""
    if a.scores is None or b.scores is None:
        return
    common = np.intersect1d(a.rows, b.rows)
    for plugin in dict.fromkeys([*a.scores.by_plugin, *b.scores.by_plugin]):
        of_a, of_b = _of(plugin, a.scores, a.rows, common), _of(plugin, b.scores, b.rows, common)
        differing = np.flatnonzero(of_a != of_b).tolist()
        if differing:
            names = [engine.cluster.nodes.name(int(common[i])) for i in differing]
            values = [(int(of_a[i]), int(of_b[i])) for i in differing]
            yield ScoreChange(plugin, dict(zip(names, values, strict=True)))


def _of(plugin: str, scores: Scores, rows: Rows, common: Rows) -> Int64:
    """Scores of the common rows; `rows` are ascending."""
    known = scores.by_plugin.get(plugin)
    return np.zeros(common.size, np.int64) if known is None else known[np.searchsorted(rows, common)]
