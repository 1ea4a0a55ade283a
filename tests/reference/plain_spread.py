"""Topology spread for one pod: constraints, counts by domain, skew, scores."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

from reference.plain_matching import HARD, is_empty, selects, untolerated, wants_node, with_label_keys
from reference.plain_world import PlainWorld, Rejection, Tree, labels_of, name_of, namespace_of

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
TEXT = "node(s) didn't match pod topology spread constraints"
SYSTEM = (
    {"topologyKey": HOSTNAME, "maxSkew": 3, "whenUnsatisfiable": "ScheduleAnyway"},
    {"topologyKey": ZONE, "maxSkew": 5, "whenUnsatisfiable": "ScheduleAnyway"},
)
KINDS = {
    ("v1", "ReplicationController"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
}


class PlainSpread:
    def __init__(self, world: PlainWorld, pod: Tree) -> None:
        self.world, self.pod = world, pod
        self.own = pod["spec"].get("topologySpreadConstraints") or []
        args = world.args.get("PodTopologySpread") or {}
        self.is_system = args.get("defaultingType", "System") == "System"
        self.defaults = SYSTEM if self.is_system else args["defaultConstraints"]
        self.hard = self._constraints("DoNotSchedule")
        self.matching: dict[tuple[int, str], int] = {}
        self.domains = [self._domains(constraint) for constraint in self.hard]

    def reject(self, node: Tree) -> Rejection | None:
        for constraint, domains in zip(self.hard, self.domains, strict=True):
            value = labels_of(node).get(constraint["topologyKey"])
            if value is None:
                return Rejection("PodTopologySpread", False, (f"{TEXT} (missing required label)",))
            fewest = min(domains.values(), default=0)
            if len(domains) < (constraint.get("minDomains") or 1):
                fewest = 0
            own = 1 if selects(constraint["selector"], labels_of(self.pod)) else 0
            if domains.get(value, 0) + own - fewest > constraint["maxSkew"]:
                return Rejection("PodTopologySpread", True, (TEXT,))
        return None

    def _domains(self, constraint: Tree) -> dict[str, int]:
        domains: dict[str, int] = {}
        for node in self.world.nodes:
            if self._has_all_keys(node, self.hard) and self._is_included(node, constraint):
                value = labels_of(node)[constraint["topologyKey"]]
                domains[value] = domains.get(value, 0) + self._matching(constraint, node)
        return domains

    def _has_all_keys(self, node: Tree, constraints: list[Tree]) -> bool:
        return all(constraint["topologyKey"] in labels_of(node) for constraint in constraints)

    def _is_included(self, node: Tree, constraint: Tree) -> bool:
        if (constraint.get("nodeAffinityPolicy") or "Honor") == "Honor" and not wants_node(self.pod, node):
            return False
        honors_taints = (constraint.get("nodeTaintsPolicy") or "Ignore") == "Honor"
        return not (honors_taints and untolerated(self.pod, node, HARD))

    def _matching(self, constraint: Tree, node: Tree) -> int:
        key = (id(constraint), name_of(node))
        if key not in self.matching:
            self.matching[key] = sum(self._counts(constraint, pod) for pod in self.world.pods_on(node))
        return self.matching[key]

    def _counts(self, constraint: Tree, pod: Tree) -> bool:
        return (
            namespace_of(pod) == namespace_of(self.pod)
            and not pod["metadata"].get("deletionTimestamp")
            and not is_empty(constraint["selector"])
            and selects(constraint["selector"], labels_of(pod))
        )

    # Constraints

    def _constraints(self, action: str) -> list[Tree]:
        if self.own:
            of = [{**c, "selector": with_label_keys(c, self.pod)} for c in self.own]
        else:
            selector = self._workload()
            of = [] if is_empty(selector) else [{**c, "selector": selector} for c in self.defaults]
        return [constraint for constraint in of if constraint["whenUnsatisfiable"] == action]

    def _workload(self) -> Tree:
        """What the Services that select the pod and its controller select, all at once."""
        pairs: dict[str, str] = {}
        for service in self.world.services:
            wanted = service["spec"].get("selector") or {}
            is_here = namespace_of(service) == namespace_of(self.pod)
            if wanted and is_here and all(labels_of(self.pod).get(k) == v for k, v in wanted.items()):
                pairs |= wanted
        expressions: list[Tree] = []
        owners = [o for o in self.pod["metadata"].get("ownerReferences") or [] if o.get("controller")]
        for owner in owners:
            for found in self.world.controllers:
                kind = (found["apiVersion"], found["kind"])
                is_owner = (owner["apiVersion"], owner["kind"], owner["name"]) == (*kind, name_of(found))
                if not is_owner or namespace_of(found) != namespace_of(self.pod) or kind not in KINDS:
                    continue
                if found["kind"] == "ReplicationController":
                    pairs |= found["spec"]["selector"]
                else:
                    selector = found["spec"]["selector"]
                    expressions += selector.get("matchExpressions") or []
                    more = selector.get("matchLabels") or {}
                    expressions += [{"key": k, "operator": "In", "values": [v]} for k, v in more.items()]
        return {"matchLabels": pairs, "matchExpressions": expressions}

    # Score

    def scores(self, feasible: list[Tree]) -> dict[str, int]:
        soft = self._constraints("ScheduleAnyway")
        if not soft:
            return {}
        needs_all = bool(self.own) or not self.is_system
        scored = [node for node in feasible if not needs_all or self._has_all_keys(node, soft)]
        totals: dict[str, float] = {name_of(node): 0.0 for node in scored}
        for constraint in soft:
            for name, worth in self._worth(constraint, soft, scored, needs_all).items():
                totals[name] += worth
        raw = {
            name: int(Decimal(total).quantize(Decimal(1), rounding=ROUND_HALF_UP))
            for name, total in totals.items()
        }
        low, high = min(raw.values(), default=0), max(raw.values(), default=0)
        normal = {name: 100 * (high + low - s) // high if high else 100 for name, s in raw.items()}
        return {name_of(node): normal.get(name_of(node), 0) for node in feasible}

    def _worth(
        self, constraint: Tree, soft: list[Tree], scored: list[Tree], needs_all: bool
    ) -> dict[str, float]:
        key = constraint["topologyKey"]
        if key == HOSTNAME:
            size = len(scored)
            counts = {name_of(node): self._matching(constraint, node) for node in scored}
        else:
            size = len({labels_of(node).get(key, "") for node in scored})
            by_value: dict[str, int] = {}
            for node in self.world.nodes:
                has_keys = not needs_all or self._has_all_keys(node, soft)
                if has_keys and self._is_included(node, constraint):
                    value = labels_of(node).get(key, "")
                    by_value[value] = by_value.get(value, 0) + self._matching(constraint, node)
            counts = {name_of(node): by_value.get(labels_of(node).get(key, ""), 0) for node in scored}
        weight, allowance = math.log(size + 2), constraint["maxSkew"] - 1
        return {
            name_of(node): counts[name_of(node)] * weight + allowance
            for node in scored
            if key in labels_of(node)
        }
