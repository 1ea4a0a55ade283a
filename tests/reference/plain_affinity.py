"""Inter-pod affinity for one pod: every pod on a node is asked, every term by itself."""

from __future__ import annotations

from collections.abc import Iterator

from reference.plain_matching import PREFERRED, REQUIRED, selects, with_label_keys
from reference.plain_world import Pair, PlainWorld, Rejection, Tree, labels_of, name_of, namespace_of

AFFINITY, ANTI = "podAffinity", "podAntiAffinity"


def terms_of(pod: Tree, side: str, strength: str) -> list[Tree]:
    return ((pod["spec"].get("affinity") or {}).get(side) or {}).get(strength) or []


class PlainAffinity:
    def __init__(self, world: PlainWorld, pod: Tree) -> None:
        self.world, self.pod = world, pod
        self.placed = list(world.placed())
        self.required = terms_of(pod, AFFINITY, REQUIRED)
        self.anti = terms_of(pod, ANTI, REQUIRED)
        self.required_pairs = self._required_pairs()
        self.anti_pairs = [set(self._pairs_matched(term)) for term in self.anti]
        self.existing_pairs = set(self._pairs_against())

    def matches(self, term: Tree, owner: Tree, other: Tree) -> bool:
        """Whether a term of `owner` selects the pod `other`."""
        namespace = namespace_of(other)
        names, selector = term.get("namespaces") or [], term.get("namespaceSelector")
        if not names and selector is None:
            names = [namespace_of(owner)]
        is_there = namespace in names or selects(selector, self.world.namespaces.get(namespace, {}))
        return is_there and selects(with_label_keys(term, owner), labels_of(other))

    def _required_pairs(self) -> set[Pair]:
        pairs: set[Pair] = set()
        if self.required:
            for node, other in self.placed:
                if all(self.matches(term, self.pod, other) for term in self.required):
                    pairs |= {pair for term in self.required for pair in _pair(term, node)}
        return pairs

    def _pairs_matched(self, term: Tree) -> Iterator[Pair]:
        for node, other in self.placed:
            if self.matches(term, self.pod, other):
                yield from _pair(term, node)

    def _pairs_against(self) -> Iterator[Pair]:
        for node, other in self.placed:
            for term in terms_of(other, ANTI, REQUIRED):
                if self.matches(term, other, self.pod):
                    yield from _pair(term, node)

    # Filter

    def reject(self, node: Tree) -> Rejection | None:
        if not self._affinity_holds(node):
            return Rejection("InterPodAffinity", False, ("node(s) didn't match pod affinity rules",))
        for term, pairs in zip(self.anti, self.anti_pairs, strict=True):
            if any(pair in pairs for pair in _pair(term, node)):
                text = "node(s) didn't match pod anti-affinity rules"
                return Rejection("InterPodAffinity", True, (text,))
        if any(pair in self.existing_pairs for pair in labels_of(node).items()):
            text = "node(s) didn't satisfy existing pods anti-affinity rules"
            return Rejection("InterPodAffinity", True, (text,))
        return None

    def _affinity_holds(self, node: Tree) -> bool:
        wanted = [pair for term in self.required for pair in _pair(term, node)]
        if len(wanted) < len(self.required):
            return False
        if all(pair in self.required_pairs for pair in wanted):
            return True
        is_first = not self.required_pairs
        return is_first and all(self.matches(term, self.pod, self.pod) for term in self.required)

    # Score

    def scores(self, feasible: list[Tree]) -> dict[str, int]:
        args = self.world.args.get("InterPodAffinity") or {}
        own = terms_of(self.pod, AFFINITY, PREFERRED) + terms_of(self.pod, ANTI, PREFERRED)
        if args.get("ignorePreferredTermsOfExistingPods") and not own:
            return {}
        hard_weight = args.get("hardPodAffinityWeight", 1)
        sums: dict[Pair, int] = {}
        for node, other in self.placed:
            for term, weight in self._contributions(other, hard_weight):
                for pair in _pair(term, node):
                    sums[pair] = sums.get(pair, 0) + weight
        if not sums:
            return {}
        raw = {name_of(n): sum(sums.get(pair, 0) for pair in labels_of(n).items()) for n in feasible}
        low, high = min(raw.values()), max(raw.values())
        if low == high:
            return dict.fromkeys(raw, 0)
        return {name: int(100.0 * (float(s - low) / float(high - low))) for name, s in raw.items()}

    def _contributions(self, other: Tree, hard_weight: int) -> Iterator[tuple[Tree, int]]:
        for owner, target in ((self.pod, other), (other, self.pod)):
            for side, sign in ((AFFINITY, 1), (ANTI, -1)):
                for preference in terms_of(owner, side, PREFERRED):
                    if self.matches(preference["podAffinityTerm"], owner, target):
                        yield preference["podAffinityTerm"], sign * preference["weight"]
        for term in terms_of(other, AFFINITY, REQUIRED):
            if self.matches(term, other, self.pod):
                yield term, hard_weight


def _pair(term: Tree, node: Tree) -> list[Pair]:
    key = term["topologyKey"]
    return [(key, labels_of(node)[key])] if key in labels_of(node) else []
