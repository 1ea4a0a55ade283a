"""Field cases E1 E4 E5 E7 on the whole system: selectors of namespaces, revisions, domains and nodes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pilotage.testing.harness import Harness

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NAMESPACE_NAME = "kubernetes.io/metadata.name"


# -- E1 ------------------------------------------------------------------------------------------

NOT_A = {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "NotIn", "values": ["workload-a"]}]}
NO_TEAM = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
REJECTED = "didn't match pod anti-affinity rules"


def apart(selector: dict[str, Any] | None) -> dict[str, Any]:
    """A term about pods labelled `id` on the same node, in the namespaces of that selector."""
    term: dict[str, Any] = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchExpressions": [{"key": "id", "operator": "Exists"}]},
    }
    return term if selector is None else {**term, "namespaceSelector": selector}


def required_anti(selector: dict[str, Any] | None) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart(selector)]}}


def preferred_anti(selector: dict[str, Any] | None) -> dict[str, Any]:
    weighted = {"weight": 100, "podAffinityTerm": apart(selector)}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


def workloads(h: Harness) -> None:
    """Two namespaces; the first has a team. Both exist before any pod does."""
    for name, labels in (("workload-a", {"team": "x"}), ("workload-b", {})):
        h.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})


@pytest.mark.parametrize(
    ("selector", "where", "is_bound"),
    [
        (NOT_A, "workload-a", True),
        (NOT_A, "workload-b", False),
        (NO_TEAM, "workload-a", True),
        (NO_TEAM, "workload-b", False),
        ({}, "workload-a", False),
        ({}, "workload-b", False),
        (None, "workload-a", False),
        (None, "workload-b", True),
    ],
)
def test_e1_required_terms_look_at_the_selected_namespaces_only(
    selector: dict[str, Any] | None, where: str, is_bound: bool
) -> None:
    with Harness(seed=1) as h:
        workloads(h)
        h.create(h.node("n1"), h.pod("x", namespace=where, labels={"id": "1"}))
        h.run_until_running("x", namespace=where)
        h.create(
            h.pod("c", namespace="workload-a", labels={"id": "2"}, affinity=required_anti(selector)),
        )
        h.run_for(3)
        state = h.pod_state("c", "workload-a")
        assert bool(state.node) == is_bound
        assert is_bound or REJECTED in state.message


@pytest.mark.parametrize(
    ("selector", "where", "is_bound"),
    [
        (NOT_A, "workload-a", True),
        (NOT_A, "workload-b", False),
        (NO_TEAM, "workload-a", True),
        (NO_TEAM, "workload-b", False),
        ({}, "workload-a", False),
        ({}, "workload-b", False),
        (None, "workload-a", True),
        (None, "workload-b", False),
    ],
)
def test_e1_terms_of_existing_pods_look_at_the_selected_namespaces_only(
    selector: dict[str, Any] | None, where: str, is_bound: bool
) -> None:
    # x lives in workload-b and keeps pods labelled `id` off its node; the candidate is in `where`.
    with Harness(seed=2) as h:
        workloads(h)
        h.create(h.node("n1"), h.pod("x", namespace="workload-b", affinity=required_anti(selector)))
        h.run_until_running("x", namespace="workload-b")
        h.create(h.pod("c", namespace=where, labels={"id": "1"}))
        h.run_for(3)
        state = h.pod_state("c", where)
        assert bool(state.node) == is_bound
        assert is_bound or "existing pods anti-affinity rules" in state.message


@pytest.mark.parametrize(
    ("selector", "where", "counts"),
    [
        (NOT_A, "workload-a", False),
        (NOT_A, "workload-b", True),
        (NO_TEAM, "workload-a", False),
        (NO_TEAM, "workload-b", True),
        ({}, "workload-a", True),
        ({}, "workload-b", True),
        (None, "workload-a", True),
        (None, "workload-b", False),
    ],
)
@pytest.mark.parametrize("whose", ["candidate", "existing"])
def test_e1_preferred_terms_look_at_the_selected_namespaces_only(
    selector: dict[str, Any] | None, where: str, counts: bool, whose: str
) -> None:
    # n1 is emptier, so it wins unless the term about x counts. The owner of the term is in workload-a.
    owner, other = "workload-a", where
    mine, of_x = (owner, other) if whose == "candidate" else (other, owner)
    term = {"affinity": preferred_anti(selector)}
    with Harness(seed=3) as h:
        workloads(h)
        h.create(h.node("n1", cpu=64, memory="64Gi"), h.node("n2", cpu=2, memory="2Gi"))
        on_n1 = {"node_selector": {HOSTNAME: "n1"}, "namespace": of_x}
        h.create(h.pod("x", labels={"id": "1"}, **on_n1, **(term if whose == "existing" else {})))
        h.run_until_running("x", namespace=of_x)
        more = term if whose == "candidate" else {}
        h.create(h.pod("c", cpu=1, memory="1Gi", labels={"id": "2"}, namespace=mine, **more))
        h.run_until_bound("c", namespace=mine)
        assert h.pod_state("c", mine).node == ("n2" if counts else "n1")


# -- E4 ------------------------------------------------------------------------------------------


def replica(h: Harness, name: str, revision: str, *keys: str, on: str = "") -> dict[str, Any]:
    rule: dict[str, Any] = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "app1"}},
    }
    rule |= {"matchLabelKeys": list(keys)} if keys else {}
    labels = {"app": "app1", "pod-template-hash": revision}
    where = {"node_selector": {HOSTNAME: on}} if on else {"topologySpreadConstraints": [rule]}
    return h.pod(name, cpu="100m", labels=labels, grace=0, **where)


ONE_BY_ONE = ((0,), (1,), (2,), (3,), (4,))
ORDERS = (
    ONE_BY_ONE,
    ((4,), (3,), (2,), (1,), (0,)),
    ((2,), (3,), (0,), (1,), (4,)),
    ((4,), (0,), (2,), (1,), (3,)),
    ((4, 2), (3,), (0, 1)),
    ((2, 3, 4), (0, 1)),
)


def rolled(order: tuple[tuple[int, ...], ...], *keys: str, seed: int = 4) -> list[int]:
    """New replicas per node; so many are created before old ones are deleted as are deleted then."""
    numbers = iter(range(5))
    with Harness(seed=seed) as h:
        h.create(*(h.node(f"n{i}") for i in (1, 2, 3)))
        old = [f"old{i}" for i in range(5)]
        h.create(*(replica(h, name, "1", on=f"n{1 + i // 2}") for i, name in enumerate(old)))
        h.run_until_running(*old)
        for batch in order:
            h.create(*(replica(h, f"new{next(numbers)}", "2", *keys) for _ in batch))
            h.run_for(3)
            for deleted in batch:
                h.delete("pods", old[deleted], grace=0)
            h.run_for(3)
        h.run_until_running(*(f"new{i}" for i in range(5)), timeout=30)
        found = Counter(h.pod_state(f"new{i}").node for i in range(5))
        return sorted((found[f"n{i}"] for i in (1, 2, 3)), reverse=True)


@pytest.mark.parametrize("order", ORDERS)
def test_e4_a_new_revision_ends_even_whatever_is_deleted_first(order: tuple[tuple[int, ...], ...]) -> None:
    assert rolled(order, "pod-template-hash") == [2, 2, 1]
    assert rolled(order, "pod-template-hash", "not-on-the-pod") == [2, 2, 1]


def test_e4_without_the_key_old_pods_count_and_the_end_may_be_uneven() -> None:
    ends = [rolled(order, seed=seed) for order in ORDERS[-2:] for seed in range(4)]
    assert any(end != [2, 2, 1] for end in ends), ends


# -- E5 ------------------------------------------------------------------------------------------

SPREAD = "didn't match pod topology spread constraints"


def spread(key: str, **fields: Any) -> dict[str, Any]:
    selector = {"labelSelector": {"matchLabels": {"app": "a"}}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **selector, **fields}


def mates(h: Harness, *nodes: str) -> None:
    """One pod of the app on each node."""
    names = [f"a{number}" for number, _ in enumerate(nodes)]
    for name, node in zip(names, nodes, strict=True):
        h.create(h.pod(name, labels={"app": "a"}, node_selector={HOSTNAME: node}))
    h.run_until_running(*names)


def is_bound(h: Harness, **rule: Any) -> bool:
    """Whether one more pod of the app, with this constraint, is bound; if not, that it says why."""
    more = rule.pop("more", {})
    constraint = spread(rule.pop("key"), **rule)
    h.create(h.pod("next", labels={"app": "a"}, topologySpreadConstraints=[constraint], **more))
    h.run_for(3)
    state = h.pod_state("next")
    assert state.node or SPREAD in state.message
    return bool(state.node)


@pytest.mark.parametrize(("policy", "expected"), [(None, False), ("Ignore", False), ("Honor", True)])
def test_e5_tainted_nodes_are_empty_domains_unless_taints_are_honoured(
    policy: str | None, expected: bool
) -> None:
    taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    with Harness(seed=5) as h:
        h.create(*(h.node(f"c{i}", taints=[taint]) for i in range(3)))
        h.create(*(h.node(f"w{i}") for i in range(3)))
        mates(h, "w0", "w1", "w2")
        more = {"nodeTaintsPolicy": policy} if policy else {}
        assert is_bound(h, key=HOSTNAME, **more) == expected


@pytest.mark.parametrize(("domains", "expected"), [(3, False), (2, True), (None, True)])
def test_e5_a_tainted_zone_is_no_domain_and_too_few_mean_a_minimum_of_none(
    domains: int | None, expected: bool
) -> None:
    taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
    with Harness(seed=6) as h:
        h.create(h.node("na", zone="a"), h.node("nb", zone="b"))
        h.create(*(h.node(f"nc{i}", zone="c", taints=[taint]) for i in range(2)))
        mates(h, "na", "nb")
        more = {"minDomains": domains} if domains else {}
        assert is_bound(h, key=ZONE, nodeTaintsPolicy="Honor", **more) == expected


@pytest.mark.parametrize(("policy", "expected"), [(None, True), ("Honor", True), ("Ignore", False)])
def test_e5_nodes_outside_the_selector_are_no_domains_by_default(policy: str | None, expected: bool) -> None:
    with Harness(seed=7) as h:
        h.create(h.node("n1", labels={"disk": "ssd"}), h.node("n2", labels={"disk": "ssd"}), h.node("n3"))
        mates(h, "n1", "n2")
        more = {"nodeAffinityPolicy": policy} if policy else {}
        assert is_bound(h, key=HOSTNAME, more={"node_selector": {"disk": "ssd"}}, **more) == expected


# -- E7 ------------------------------------------------------------------------------------------


def field(*names: str) -> dict[str, Any]:
    """`matchFields` that ask for every one of the names: two contradict one another."""
    wanted = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]
    return {"matchFields": wanted}


FOO_BAR = {"matchExpressions": [{"key": "foo", "operator": "In", "values": ["bar"]}]}
BOTH = {**field("n1"), **FOO_BAR}


@pytest.mark.parametrize(
    ("terms", "selector", "expected"),
    [
        ([field("n1", "n2"), FOO_BAR], {}, "n2"),
        ([FOO_BAR, field("n1", "n2")], {}, "n2"),
        ([field("n1", "n2")], {}, ""),
        ([BOTH], {}, ""),
        ([{}, FOO_BAR], {}, "n2"),
        ([{}], {}, ""),
        ([field("n1"), field("n2")], {"foo": "bar"}, "n2"),
        ([field("n1")], {"foo": "bar"}, ""),
        ([field("n1"), FOO_BAR], {HOSTNAME: "n2"}, "n2"),
        ([field("n1"), FOO_BAR], {HOSTNAME: "n1"}, "n1"),
        ([field("n3"), FOO_BAR], {}, "n2"),
    ],
)
def test_e7_terms_are_alternatives_and_what_is_in_one_is_not(
    terms: list[dict[str, Any]], selector: dict[str, str], expected: str
) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    with Harness(seed=8) as h:
        h.create(h.node("n1"), h.node("n2", labels={"foo": "bar"}))
        h.create(h.pod("a", affinity={"nodeAffinity": required}, node_selector=selector))
        h.run_for(2)
        assert h.pod_state("a").node == expected
