"""What is refused about where a pod wants to run: selectors, affinity, spread, tolerations, gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec

from pilotage.api.label_matcher import key_problem, value_problem
from pilotage.api.meta import LabelSelector
from pilotage.api.pods import NodeSelectorTerm
from pilotage.api.selectors import SelectorError, compile_label_selector, compile_node_term
from pilotage.localcluster.rest.errors import (
    Cause,
    forbidden_field,
    invalid_value,
    required_value,
    unsupported_value,
)
from pilotage.localcluster.rest.names import qualified_problem, subdomain_problem
from pilotage.localcluster.rest.trees import child, children, numbered, text, texts
from pilotage.localcluster.store import Tree

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")

T = TypeVar("T")


def placement_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """All faults of the placement fields of a pod spec at `path`."""
    name = text(spec, "nodeName")
    if name and (problem := subdomain_problem(name)):
        yield invalid_value(f"{path}.nodeName", name, problem)
    if "nodeSelector" in spec:
        yield from label_map_causes(child(spec, "nodeSelector"), f"{path}.nodeSelector")
    if affinity := child(spec, "affinity"):
        yield from _affinity(affinity, f"{path}.affinity")
    if "topologySpreadConstraints" in spec:
        yield from _spread(spec, path)
    for where, toleration in numbered(spec, "tolerations", path):
        yield from _toleration(toleration, where)
    if "schedulingGates" in spec:
        yield from _gates(spec, path)


def label_map_causes(labels: Tree | None, path: str) -> Iterator[Cause]:
    """Faults of a map of labels."""
    for key, value in (labels or {}).items():
        if problem := key_problem(key):
            yield invalid_value(path, key, problem)
        if not isinstance(value, str):
            yield invalid_value(f"{path}[{key}]", value, "must be a string")
        elif problem := value_problem(value):
            yield invalid_value(path, value, problem)


def label_selector_causes(tree: Tree | None, path: str) -> Iterator[Cause]:
    """Faults of a label selector, the first one only."""
    if tree is None:
        return
    try:
        compile_label_selector(msgspec.convert(tree, LabelSelector), path)
    except SelectorError as error:
        yield invalid_value(error.field, error.value, error.problem)
    except msgspec.ValidationError as error:
        yield invalid_value(path, tree, str(error))


def _affinity(affinity: Tree, path: str) -> Iterator[Cause]:
    if node := child(affinity, "nodeAffinity"):
        yield from _node_affinity(node, f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if pod := child(affinity, name):
            yield from _pod_affinity(pod, f"{path}.{name}")


def _node_affinity(affinity: Tree, path: str) -> Iterator[Cause]:
    if (required := child(affinity, _REQUIRED)) is not None:
        if not children(required, "nodeSelectorTerms"):
            yield required_value(
                f"{path}.{_REQUIRED}.nodeSelectorTerms", "must have at least one node selector term"
            )
        for where, term in numbered(required, "nodeSelectorTerms", f"{path}.{_REQUIRED}"):
            yield from _node_term(term, where)
    for where, preferred in numbered(affinity, _PREFERRED, path):
        yield from _weight(preferred, where)
        yield from _node_term(child(preferred, "preference") or {}, f"{where}.preference")


def _node_term(tree: Tree, path: str) -> Iterator[Cause]:
    try:
        compile_node_term(msgspec.convert(tree, NodeSelectorTerm), path)
    except SelectorError as error:
        yield invalid_value(error.field, error.value, error.problem)
    except msgspec.ValidationError as error:
        yield invalid_value(path, tree, str(error))


def _pod_affinity(affinity: Tree, path: str) -> Iterator[Cause]:
    for where, term in numbered(affinity, _REQUIRED, path):
        yield from _pod_term(term, where)
    for where, weighted in numbered(affinity, _PREFERRED, path):
        yield from _weight(weighted, where)
        yield from _pod_term(child(weighted, "podAffinityTerm") or {}, f"{where}.podAffinityTerm")


def _pod_term(term: Tree, path: str) -> Iterator[Cause]:
    yield from _topology_key(term, path, "can not be empty")
    yield from label_selector_causes(child(term, "labelSelector"), f"{path}.labelSelector")
    yield from label_selector_causes(child(term, "namespaceSelector"), f"{path}.namespaceSelector")
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if texts(term, field) and "labelSelector" not in term:
            yield forbidden_field(f"{path}.{field}", "must not be specified when labelSelector is not set")


def _topology_key(tree: Tree, path: str, why: str) -> Iterator[Cause]:
    key = text(tree, "topologyKey")
    if not key:
        yield required_value(f"{path}.topologyKey", why)
    elif problem := key_problem(key):
        yield invalid_value(f"{path}.topologyKey", key, problem)


def _weight(tree: Tree, path: str) -> Iterator[Cause]:
    weight = tree.get("weight", 0)
    if not _is_integer(weight) or not 1 <= weight <= 100:
        yield invalid_value(f"{path}.weight", weight, "must be in the range 1-100")


def _spread(spec: Tree, path: str) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for where, constraint in numbered(spec, "topologySpreadConstraints", path):
        yield from _constraint(constraint, where)
        pair = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"))
        if pair in seen:
            shown = f"{{{pair[0]}, {pair[1]}}}"
            yield Cause(
                f"{where}.{{topologyKey, whenUnsatisfiable}}",
                "FieldValueDuplicate",
                f'Duplicate value: "{shown}"',
            )
        seen.add(pair)


def _constraint(constraint: Tree, path: str) -> Iterator[Cause]:
    skew = constraint.get("maxSkew", 0)
    if not _is_integer(skew) or skew <= 0:
        yield invalid_value(f"{path}.maxSkew", skew, "must be greater than zero")
    yield from _topology_key(constraint, path, "can not be empty")
    mode = text(constraint, "whenUnsatisfiable")
    if mode not in _UNSATISFIABLE:
        yield unsupported_value(f"{path}.whenUnsatisfiable", mode, _UNSATISFIABLE)
    if "minDomains" in constraint:
        yield from _min_domains(constraint["minDomains"], mode, path)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if field in constraint and constraint[field] not in _POLICIES:
            yield unsupported_value(f"{path}.{field}", constraint[field], _POLICIES)
    yield from label_selector_causes(child(constraint, "labelSelector"), f"{path}.labelSelector")
    if texts(constraint, "matchLabelKeys") and "labelSelector" not in constraint:
        yield forbidden_field(f"{path}.matchLabelKeys", "must not be specified when labelSelector is not set")


def _min_domains(value: Any, mode: str, path: str) -> Iterator[Cause]:
    if not _is_integer(value) or value <= 0:
        yield invalid_value(f"{path}.minDomains", value, "must be greater than zero")
    if mode != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {mode}"
        yield invalid_value(f"{path}.minDomains", value, why)


def _toleration(toleration: Tree, path: str) -> Iterator[Cause]:
    key, operator = text(toleration, "key"), text(toleration, "operator")
    effect = text(toleration, "effect")
    if key and (problem := key_problem(key)):
        yield invalid_value(f"{path}.key", key, problem)
    if not key and operator != "Exists":
        yield invalid_value(
            f"{path}.operator", operator, "operator must be Exists when `key` is empty, which means all keys"
        )
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid_value(f"{path}.effect", effect, why)
    if operator == "Exists" and text(toleration, "value"):
        why = "value must be empty when `operator` is 'Exists'"
        yield invalid_value(f"{path}.operator", toleration["value"], why)
    elif operator not in ("", *_TOLERATION_OPERATORS):
        yield unsupported_value(f"{path}.operator", operator, _TOLERATION_OPERATORS)
    elif problem := value_problem(text(toleration, "value")):
        yield invalid_value(f"{path}.operator", toleration["value"], problem)
    if effect and effect not in _EFFECTS:
        yield unsupported_value(f"{path}.effect", effect, _EFFECTS)


def _gates(spec: Tree, path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for where, gate in numbered(spec, "schedulingGates", path):
        name = text(gate, "name")
        if problem := qualified_problem(name):
            yield invalid_value(f"{where}.name", name, problem)
        if name in names:
            yield Cause(f"{where}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"')
        names.add(name)
    if names and text(spec, "nodeName"):
        why = "cannot be set until all schedulingGates have been cleared"
        yield forbidden_field(f"{path}.nodeName", why)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
