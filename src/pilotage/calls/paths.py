"""Request paths of the objects that calls write."""

from __future__ import annotations

from pilotage.framework.calls import ObjectKey


def object_path(key: ObjectKey, subresource: str = "") -> str:
    """Path of an object by its key; `resource` is the plural, with its group for non-core kinds."""
    return f"{collection_path(key.resource, key.namespace)}/{key.name}" + (
        f"/{subresource}" if subresource else ""
    )


def collection_path(resource: str, namespace: str, version: str = "v1") -> str:
    plural, _, group = resource.partition(".")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{scope}/{plural}"
