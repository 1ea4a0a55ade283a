"""Admission of claims that name no StorageClass: they get the one that is marked as default, if there is one.

Laws: an empty name is a choice (no class) and stays; of several marked classes the newest counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pilotage.localcluster.rest.trees import child, made, text
from pilotage.localcluster.store import Tree

CLASSES: Final = "storageclasses.storage.k8s.io"
CLAIMS: Final = "persistentvolumeclaims"
IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_OLD_FORM: Final = "volume.beta.kubernetes.io/storage-class"


def assign(tree: Tree, classes: Iterable[Tree]) -> None:
    """Fills in `spec.storageClassName` of a new claim, in place."""
    annotations = child(child(tree, "metadata"), "annotations") or {}
    spec = made(tree, "spec")
    if spec.get("storageClassName") is not None or _OLD_FORM in annotations:
        return
    marked = [one for one in classes if _is_default(one)]
    if marked:
        newest = max(marked, key=lambda one: (_meta(one, "creationTimestamp"), _meta(one, "name")))
        spec["storageClassName"] = _meta(newest, "name")


def _is_default(tree: Tree) -> bool:
    return text(child(child(tree, "metadata"), "annotations"), IS_DEFAULT) == "true"


def _meta(tree: Tree, field: str) -> str:
    return text(child(tree, "metadata"), field)
