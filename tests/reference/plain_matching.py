"""Selectors, tolerations and node affinity on manifests, one expression after the other."""

from __future__ import annotations

import re
from typing import Any

from reference.plain_world import Tree, labels_of, name_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HARD = ("NoSchedule", "NoExecute")


def number(text: str | None) -> int | None:
    """A 64-bit decimal, or None."""
    if text is None or not re.fullmatch("[+-]?[0-9]+", text):
        return None
    return int(text) if -(2**63) <= int(text) < 2**63 else None


def meets(expression: Tree, labels: dict[str, str]) -> bool:
    value, wanted = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value is not None and value in wanted
        case "NotIn":
            return value is None or value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    own, limit = number(value), number(wanted[0])
    if own is None or limit is None:
        return False
    return own > limit if expression["operator"] == "Gt" else own < limit


def selects(selector: Tree | None, labels: dict[str, str]) -> bool:
    if selector is None:
        return False
    pairs = (selector.get("matchLabels") or {}).items()
    return all(labels.get(key) == value for key, value in pairs) and all(
        meets(expression, labels) for expression in selector.get("matchExpressions") or []
    )


def is_empty(selector: Tree | None) -> bool:
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def with_label_keys(term: Tree, owner: Tree) -> Tree | None:
    """The term's label selector with matchLabelKeys and mismatchLabelKeys of its owner."""
    selector = term.get("labelSelector")
    if selector is None:
        return None
    expressions = list(selector.get("matchExpressions") or [])
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field) or []:
            if key in labels_of(owner):
                values = [labels_of(owner)[key]]
                expressions.append({"key": key, "operator": operator, "values": values})
    return {"matchLabels": selector.get("matchLabels"), "matchExpressions": expressions}


def tolerates(pod: Tree, taint: Tree) -> bool:
    return any(_tolerated_by(toleration, taint) for toleration in pod["spec"].get("tolerations") or [])


def _tolerated_by(toleration: Tree, taint: Tree) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if (toleration.get("operator") or "Equal") == "Exists":
        return True
    return (toleration.get("value") or "") == (taint.get("value") or "")


def untolerated(pod: Tree, node: Tree, effects: tuple[str, ...]) -> list[Tree]:
    taints = node["spec"].get("taints") or []
    return [taint for taint in taints if taint["effect"] in effects and not tolerates(pod, taint)]


def term_matches_node(term: Tree, node: Tree) -> bool:
    labels, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not labels and not fields:
        return False
    return all(meets(expression, labels_of(node)) for expression in labels) and all(
        meets(expression, {"metadata.name": name_of(node)}) for expression in fields
    )


def selector_matches_node(selector: Tree, node: Tree) -> bool:
    return any(term_matches_node(term, node) for term in selector["nodeSelectorTerms"])


def node_affinity(pod: Tree) -> dict[str, Any]:
    return (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}


def wants_node(pod: Tree, node: Tree) -> bool:
    """nodeSelector and required node affinity."""
    wanted = (pod["spec"].get("nodeSelector") or {}).items()
    if any(labels_of(node).get(key) != value for key, value in wanted):
        return False
    required = node_affinity(pod).get(REQUIRED)
    return required is None or selector_matches_node(required, node)
