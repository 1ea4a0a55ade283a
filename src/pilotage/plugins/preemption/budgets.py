"""PodDisruptionBudgets: which of a node's pods would go beyond what their budgets allow.

Laws: only budgets of the pod's namespace with a non-empty selector count; a pod that the budget lists as
disrupted already is paid for; budgets are walked per node, each node starting from the full allowance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from pilotage.api.label_matcher import LabelMatcher
from pilotage.api.others import PodDisruptionBudget
from pilotage.api.selectors import SelectorError, compile_label_selector
from pilotage.state.cluster import ClusterState
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Bool

RESOURCE = "poddisruptionbudgets.policy"


class _Budget(NamedTuple):
    number: int
    matcher: LabelMatcher
    allowed: int
    disrupted: frozenset[str]  # pod names

    def charges(self, pod: PodInfo) -> bool:
        return pod.name not in self.disrupted and self.matcher.matches(pod.labels)


class Budgets:
    """All budgets, compiled once for as long as none of them changes."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._revision = -1
        self._by_namespace: dict[str, list[_Budget]] = {}

    def violating(self, pods: Sequence[PodInfo]) -> Bool:
        """[pods] of one node, walked in this order: those that a budget does not allow any more."""
        found = np.zeros(len(pods), np.bool_)
        self._refresh()
        if self._by_namespace:
            spent: dict[int, int] = {}
            for index, pod in enumerate(pods):
                found[index] = self._overdraws(pod, spent)
        return found

    @property
    def is_empty(self) -> bool:
        self._refresh()
        return not self._by_namespace

    def _overdraws(self, pod: PodInfo, spent: dict[int, int]) -> bool:
        """Charges every budget that covers the pod; whether one of them is overdrawn now."""
        is_over = False
        for budget in self._by_namespace.get(pod.namespace, ()) if pod.labels else ():
            if budget.charges(pod):
                spent[budget.number] = spent.get(budget.number, 0) + 1
                is_over |= spent[budget.number] > budget.allowed
        return is_over

    def _refresh(self) -> None:
        revision = self._cluster.objects.revision(RESOURCE)
        if revision != self._revision:
            self._revision = revision
            self._by_namespace = {}
            for number, budget in enumerate(self._all()):
                self._add(number, budget)

    def _all(self) -> Iterable[PodDisruptionBudget]:
        for namespace in self._cluster.objects.namespaces(RESOURCE):
            yield from self._cluster.disruption_budgets(namespace)

    def _add(self, number: int, budget: PodDisruptionBudget) -> None:
        try:
            matcher = compile_label_selector(budget.spec.selector)
        except SelectorError:
            return  # a selector that makes no sense covers nothing
        if matcher.is_nothing or matcher.is_everything:
            return
        status = budget.status
        disrupted = frozenset(status.disrupted_pods or ())
        compiled = _Budget(number, matcher, status.disruptions_allowed, disrupted)
        self._by_namespace.setdefault(budget.metadata.namespace, []).append(compiled)
