"""What may not change on an object once it exists.

Laws: both trees have their defaults and canonical quantities. A Pod's spec changes only in images, a
deadline that is set or lowered, added tolerations, removed gates, and a negative grace period made 1; a pod
behind gates may also narrow where it may run. Everything else is refused as a whole, with the list of what
is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Final

from pilotage.localcluster.rest.errors import Cause, forbidden_field, invalid_value
from pilotage.localcluster.rest.trees import child, children, text
from pilotage.localcluster.store import Tree

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_ONLY: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)
_IMMUTABLE: Final = "field is immutable"


def update_causes(resource: str, old: Tree, new: Tree) -> list[Cause]:
    """Faults of the change from `old` to `new` of one object of this resource."""
    function = _RULES.get(resource)
    return list(function(old, new)) if function is not None else []


def _pod(old: Tree, new: Tree) -> Iterator[Cause]:
    before, after = child(old, "spec") or {}, child(new, "spec") or {}
    if before == after:
        return
    causes = [*_gates(before, after), *_tolerations(before, after), *_deadline(before, after)]
    if causes:
        yield from causes
        return
    if changed := _other_changes(before, after):
        yield forbidden_field("spec", f"{_ONLY}\n{_listed(changed, before, after)}")


def _gates(before: Tree, after: Tree) -> Iterator[Cause]:
    known = [text(gate, "name") for gate in children(before, "schedulingGates")]
    for gate in children(after, "schedulingGates"):
        if text(gate, "name") not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{text(gate, 'name')}'"
            yield forbidden_field("spec.schedulingGates", why)


def _tolerations(before: Tree, after: Tree) -> Iterator[Cause]:
    """Existing ones stay, apart from how long they hold."""
    kept = [_without_seconds(one) for one in children(after, "tolerations")]
    if any(_without_seconds(one) not in kept for one in children(before, "tolerations")):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_field("spec.tolerations", why)


def _without_seconds(toleration: Tree) -> Tree:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _deadline(before: Tree, after: Tree) -> Iterator[Cause]:
    old, new = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    field = "spec.activeDeadlineSeconds"
    if isinstance(old, int) and new is None:
        yield invalid_value(field, new, "must not update from a positive integer to nil value")
    elif isinstance(old, int) and isinstance(new, int) and new > old:
        yield invalid_value(field, new, "must be less than or equal to previous value")


def _other_changes(before: Tree, after: Tree) -> list[str]:
    """Top-level spec fields that differ after everything allowed was taken over."""
    allowed = deepcopy(after)
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        _take(field, before, allowed)
    for field in ("containers", "initContainers"):
        old, new = children(before, field), children(allowed, field)
        if len(old) == len(new):
            for was, now in zip(old, new, strict=True):
                _take("image", was, now)
    if _is_negative(before) and after.get("terminationGracePeriodSeconds") == 1:
        _take("terminationGracePeriodSeconds", before, allowed)
    if children(before, "schedulingGates"):
        _take_narrowed(before, allowed)
    return [key for key in sorted({*before, *allowed}) if before.get(key) != allowed.get(key)]


def _take(field: str, source: Tree, target: Tree) -> None:
    """Makes a field of `target` what it is in `source`."""
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


def _is_negative(spec: Tree) -> bool:
    grace = spec.get("terminationGracePeriodSeconds")
    return isinstance(grace, int) and grace < 0


def _take_narrowed(before: Tree, after: Tree) -> None:
    """Behind gates: more node selector pairs, and node affinity that lets through no more nodes."""
    was, now = child(before, "nodeSelector") or {}, child(after, "nodeSelector") or {}
    if all(now.get(key) == value for key, value in was.items()):
        _take("nodeSelector", before, after)
    old = child(child(before, "affinity"), "nodeAffinity") or {}
    new = child(child(after, "affinity"), "nodeAffinity") or {}
    if old != new and _is_narrower(child(old, _REQUIRED), child(new, _REQUIRED)):
        affinity = dict(child(after, "affinity") or {})
        _take("nodeAffinity", child(before, "affinity") or {}, affinity)
        if affinity or "affinity" in before:
            after["affinity"] = affinity
        else:
            after.pop("affinity", None)


def _is_narrower(old: Tree | None, new: Tree | None) -> bool:
    """Terms stay the same in number; each only gains requirements. Without terms before, any will do."""
    was, now = children(old, "nodeSelectorTerms"), children(new, "nodeSelectorTerms")
    if not was:
        return True
    if len(was) != len(now):
        return False
    return all(
        all(one in children(term, part) for one in children(before, part))
        for before, term in zip(was, now, strict=True)
        for part in ("matchExpressions", "matchFields")
    )


def _listed(fields: list[str], before: Tree, after: Tree) -> str:
    lines = []
    for field in fields:
        lines.append(f"- {field}: {before.get(field)}")
        lines.append(f"+ {field}: {after.get(field)}")
    return "\n".join(lines)


# Other kinds


def _selector(old: Tree, new: Tree) -> Iterator[Cause]:
    before, after = (child(old, "spec") or {}).get("selector"), (child(new, "spec") or {}).get("selector")
    if before != after:
        yield invalid_value("spec.selector", after, _IMMUTABLE)


def _stateful_set(old: Tree, new: Tree) -> Iterator[Cause]:
    allowed = {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
    before, after = child(old, "spec") or {}, child(new, "spec") or {}
    if any(before.get(key) != after.get(key) for key in {*before, *after} - allowed):
        listed = ", ".join(f"'{name}'" for name in sorted(allowed))
        yield forbidden_field(
            "spec", f"updates to statefulset spec for fields other than {listed} are forbidden"
        )


def _priority_class(old: Tree, new: Tree) -> Iterator[Cause]:
    if old.get("value") != new.get("value"):
        yield forbidden_field("value", "may not be changed in an update.")
    if old.get("preemptionPolicy") != new.get("preemptionPolicy"):
        yield invalid_value("preemptionPolicy", new.get("preemptionPolicy"), _IMMUTABLE)


def _storage_class(old: Tree, new: Tree) -> Iterator[Cause]:
    for field in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
        if old.get(field) != new.get(field):
            yield forbidden_field(field, "updates to it are forbidden.")


_RULES: Final[dict[str, Callable[[Tree, Tree], Iterator[Cause]]]] = {
    "pods": _pod,
    "deployments.apps": _selector,
    "replicasets.apps": _selector,
    "daemonsets.apps": _selector,
    "statefulsets.apps": _stateful_set,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "storageclasses.storage.k8s.io": _storage_class,
}
