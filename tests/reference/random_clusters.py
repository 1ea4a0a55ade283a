"""Random clusters for differential tests: small vocabularies, so that rules meet each other often."""

from __future__ import annotations

from random import Random
from typing import Any

from reference.plain_spread_affinity import HOSTNAME, PREFERRED, REQUIRED, ZONE, PlainCluster

Tree = dict[str, Any]

NAMESPACES = ("a", "b", "c")
KEYS = (ZONE, ZONE, "rack", HOSTNAME)
MOMENT = "2026-01-01T00:00:00Z"


class Source:
    """Draws manifests from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._number = 0

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def one_of(self, *values: Any) -> Any:
        return self.random.choice(values)

    def number(self) -> int:
        self._number += 1
        return self._number

    # Nodes

    def node(self) -> Tree:
        name = f"n{self.number()}"
        tree: Tree = {"metadata": {"name": name, "labels": self.node_labels(name)}, "spec": {}}
        if self.chance(0.25):
            effect = self.one_of("NoSchedule", "NoExecute", "PreferNoSchedule")
            tree["spec"]["taints"] = [{"key": "t", "value": self.one_of("x", "y"), "effect": effect}]
        if self.chance(0.05):
            tree["spec"]["unschedulable"] = True
        tree["status"] = {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "500"}}
        return tree

    def node_labels(self, name: str) -> dict[str, str]:
        labels = {}
        if self.chance(0.9):
            labels[HOSTNAME] = name
        if self.chance(0.85):
            labels[ZONE] = self.one_of("z1", "z2", "z3", "z4", *([""] if self.chance(0.2) else []))
        if self.chance(0.7):
            labels["rack"] = self.one_of("1", "2", "12")
        if self.chance(0.6):
            labels["disk"] = self.one_of("ssd", "hdd")
        return labels

    # Pods

    def pod(self, *, node: str = "", richness: float = 0.5) -> Tree:
        name = f"p{self.number()}"
        meta: Tree = {"name": name, "namespace": self.one_of(*NAMESPACES), "uid": name}
        meta["labels"] = self.pod_labels()
        spec: Tree = {"containers": [{"name": "c", "image": "i"}]}
        if node:
            spec["nodeName"] = node
            if self.chance(0.15):
                meta["deletionTimestamp"] = MOMENT
        if self.chance(richness):
            spec["affinity"] = self.affinity()
        if not node:
            self._add_wishes(meta, spec)
        return {"metadata": meta, "spec": spec}

    def pod_labels(self) -> dict[str, str]:
        labels = {}
        for key, values in (("app", "xyz"), ("rev", "12"), ("tier", "fb")):
            if self.chance(0.7):
                labels[key] = self.one_of(*values)
        return labels

    def _add_wishes(self, meta: Tree, spec: Tree) -> None:
        """What only the pod to decide needs."""
        if self.chance(0.6):
            spec["topologySpreadConstraints"] = [self.constraint() for _ in range(self.one_of(1, 1, 2, 3))]
        if self.chance(0.3):
            spec["nodeSelector"] = {"disk": self.one_of("ssd", "hdd")}
        if self.chance(0.2):
            expressions = [self.node_expression() for _ in range(self.one_of(1, 1, 2))]
            terms = [{"matchExpressions": expressions}, {"matchExpressions": [self.node_expression()]}]
            selector = {"nodeSelectorTerms": terms[: self.one_of(1, 2)]}
            spec.setdefault("affinity", {})["nodeAffinity"] = {REQUIRED: selector}
        if self.chance(0.4):
            spec["tolerations"] = [self.toleration()]
        if self.chance(0.3):
            meta["ownerReferences"] = [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "1", "controller": True}
            ]

    def node_expression(self) -> Tree:
        operator = self.one_of("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        if operator in ("Gt", "Lt"):
            return {"key": "rack", "operator": operator, "values": [self.one_of("1", "5")]}
        key = self.one_of("disk", ZONE)
        expression: Tree = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = [self.one_of("ssd", "z1", "z2")]
        return expression

    def toleration(self) -> Tree:
        if self.chance(0.3):
            return {"operator": "Exists"}
        if self.chance(0.5):
            return {"key": "t", "operator": "Equal", "value": self.one_of("x", "y")}
        return {"key": "t", "operator": "Exists", "effect": self.one_of("NoSchedule", "NoExecute")}

    def selector(self) -> Tree | None:
        kind = self.random.randrange(10)
        if kind == 0:
            return None
        if kind == 1:
            return {}
        if kind < 6:
            return {"matchLabels": {"app": self.one_of("x", "y", "z")}}
        return {"matchExpressions": [self.label_expression() for _ in range(self.one_of(1, 1, 2))]}

    def label_expression(self) -> Tree:
        key, values = self.one_of(("app", "xyz"), ("tier", "fb"))
        operator = self.one_of("In", "NotIn", "Exists", "DoesNotExist")
        expression: Tree = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = self.random.sample(values, self.random.randint(1, 2))
        return expression

    def constraint(self) -> Tree:
        constraint: Tree = {
            "topologyKey": self.one_of(*KEYS),
            "maxSkew": self.one_of(1, 1, 2, 3),
            "whenUnsatisfiable": self.one_of("DoNotSchedule", "ScheduleAnyway"),
            "labelSelector": self.selector(),
        }
        if self.chance(0.3) and constraint["whenUnsatisfiable"] == "DoNotSchedule":
            constraint["minDomains"] = self.one_of(1, 2, 3, 5)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if self.chance(0.5):
                constraint[policy] = self.one_of("Honor", "Ignore")
        if self.chance(0.3):
            constraint["matchLabelKeys"] = self.one_of(["rev"], ["rev", "missing"])
        return constraint

    def affinity(self) -> Tree:
        affinity: Tree = {}
        for side in ("podAffinity", "podAntiAffinity"):
            terms: Tree = {}
            if self.chance(0.35):
                terms[REQUIRED] = [self.term() for _ in range(self.one_of(1, 1, 2))]
            if self.chance(0.4):
                terms[PREFERRED] = [
                    {"weight": self.random.randint(1, 100), "podAffinityTerm": self.term()}
                    for _ in range(self.one_of(1, 2))
                ]
            if terms:
                affinity[side] = terms
        return affinity

    def term(self) -> Tree:
        term: Tree = {"topologyKey": self.one_of(*KEYS), "labelSelector": self.selector()}
        if self.chance(0.3):
            term["namespaces"] = self.random.sample(NAMESPACES, self.random.randint(1, 2))
        if self.chance(0.35):
            term["namespaceSelector"] = self.namespace_selector()
        if self.chance(0.2):
            term["matchLabelKeys"] = ["rev"]
        elif self.chance(0.1):
            term["mismatchLabelKeys"] = ["rev"]
        return term

    def namespace_selector(self) -> Tree:
        if self.chance(0.25):
            return {}
        operator = self.one_of("In", "NotIn", "Exists", "DoesNotExist")
        expression: Tree = {"key": "team", "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = [self.one_of("r", "g")]
        return {"matchExpressions": [expression]}

    # Clusters

    def cluster(self) -> PlainCluster:
        cluster = PlainCluster(
            nodes=[self.node() for _ in range(self.random.randint(1, 12))],
            namespaces={name: self.namespace_labels() for name in NAMESPACES},
            hard_pod_affinity_weight=self.one_of(1, 1, 0, 5, 100),
            ignore_preferred=self.chance(0.2),
        )
        if self.chance(0.2):
            keys = ("topologyKey", "maxSkew", "whenUnsatisfiable")
            cluster.default_constraints = [
                {key: value for key, value in self.constraint().items() if key in keys} for _ in range(2)
            ]
        for name in NAMESPACES:
            if self.chance(0.5):
                cluster.services.append(
                    {"metadata": {"name": "s", "namespace": name}, "spec": {"selector": {"app": "x"}}}
                )
            if self.chance(0.5):
                selector = {"matchLabels": {"tier": "f"}}
                cluster.replica_sets.append(
                    {"metadata": {"name": "rs", "namespace": name}, "spec": {"selector": selector}}
                )
        richness = self.one_of(0.0, 0.2, 0.6)
        for _ in range(self.random.randint(0, 24)):
            node = self.random.choice(cluster.nodes)["metadata"]["name"]
            cluster.pods.append(self.pod(node=node, richness=richness))
        return cluster

    def namespace_labels(self) -> dict[str, str]:
        return {"team": self.one_of("r", "g")} if self.chance(0.7) else {}
