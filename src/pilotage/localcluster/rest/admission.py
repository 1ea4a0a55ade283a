"""What happens to an object between the request's body and the store.

Order on create: nulls go, wrong types are refused (400), quantities become canonical, defaults, admission
(403), validation (422). On update the same, without what only a new object gets, plus what may not change.
All functions change the tree in place and raise `RestError`; none knows the store, the time or the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.api.decode import DecodeError, convert_object
from pilotage.api.kinds import KINDS, Kind
from pilotage.localcluster.rest.defaults import apply_defaults, default_node_status
from pilotage.localcluster.rest.errors import Cause, bad_request, forbidden, invalid
from pilotage.localcluster.rest.object_validation import validate
from pilotage.localcluster.rest.pod_admission import SYSTEM_PRIORITY_CLASSES, complete_pod, new_status
from pilotage.localcluster.rest.quantity_fields import canonicalize
from pilotage.localcluster.rest.trees import child, prune_nulls, text
from pilotage.localcluster.rest.update_rules import update_causes
from pilotage.localcluster.store import Tree

_POD = {kind.resource: kind for kind in KINDS}["pods"]

__all__ = ["SYSTEM_PRIORITY_CLASSES", "check_form", "prepare_create", "prepare_status", "prepare_update"]


def prepare_create(kind: Kind, tree: Tree, priority_classes: Sequence[Tree] = ()) -> None:
    """A new object with its final name. `priority_classes`: those stored now. Raises RestError."""
    check_form(kind, tree)
    if kind.resource == "pods":
        complete_pod(tree, priority_classes)
        tree["status"] = new_status(tree)
    else:
        apply_defaults(kind, tree)
    if kind.resource == "priorityclasses.scheduling.k8s.io":
        _check_one_default(kind, tree, priority_classes)
    _refuse(kind, tree, validate(kind, tree))


def prepare_update(kind: Kind, old: Tree, new: Tree) -> None:
    """The whole object that is to replace `old`. Raises RestError."""
    check_form(kind, new)
    _carry_over(kind, old, new)
    apply_defaults(kind, new)
    causes = update_causes(kind.resource, old, new)
    _refuse(kind, new, causes or validate(kind, new))


def prepare_status(kind: Kind, tree: Tree) -> None:
    """An object whose status was written: only that is looked at, the rest is as it was. Raises RestError."""
    written = {name: tree[name] for name in ("metadata", "status") if tree.get(name) is not None}
    check_form(kind, written)
    if "status" not in written:
        tree.pop("status", None)
    if kind.resource == "nodes":
        default_node_status(tree)


def check_form(kind: Kind, tree: Tree) -> None:
    """Drops nulls, refuses wrong types (400) and bad quantities (422), writes the others canonically."""
    prune_nulls(tree)
    _check_types(kind, kind, tree, "")
    template = child(child(tree, "spec"), "template") if kind is not _POD else None
    if template is not None and "spec" in template:
        _check_types(kind, _POD, template, "spec.template.")
    _refuse(kind, tree, canonicalize(kind, tree))


def _check_types(kind: Kind, shape: Kind, tree: Tree, path: str) -> None:
    """Refuses what cannot be read as that shape. Raises RestError 400."""
    try:
        convert_object(shape, tree)
    except DecodeError as error:
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"{path}{error.failure.error}"
        ) from None


def _carry_over(kind: Kind, old: Tree, new: Tree) -> None:
    """What admission or an allocator once set stays when a writer leaves it out."""
    before, after = child(old, "spec"), child(new, "spec")
    if before is None or after is None:
        return
    if kind.resource == "pods":
        fields: tuple[str, ...] = ("priority", "preemptionPolicy", "serviceAccountName", "serviceAccount")
    elif kind.resource == "services" and after.get("type", "ClusterIP") != "ExternalName":
        fields = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    else:
        return
    for field in fields:
        if field in before and field not in after:
            after[field] = before[field]


def _check_one_default(kind: Kind, tree: Tree, classes: Sequence[Tree]) -> None:
    if tree.get("globalDefault") is not True:
        return
    name = text(child(tree, "metadata"), "name")
    for one in classes:
        other = text(child(one, "metadata"), "name")
        if one.get("globalDefault") is True and other != name:
            why = f"PriorityClass {other} is already marked as default. Only one default can exist"
            raise forbidden(kind, name, why)


def _refuse(kind: Kind, tree: Tree, causes: Sequence[Cause]) -> None:
    if causes:
        raise invalid(kind, text(child(tree, "metadata"), "name"), causes)
