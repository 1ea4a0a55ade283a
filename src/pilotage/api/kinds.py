"""The table of kinds, for client, embedded server and command line, and how to look one up.

Laws: `Kind.resource` (`pods`, `deployments.apps`) is the one string by which events, keys and calls name a
kind. `view` is the struct that decisions read, None where nothing reads more than metadata. Kinds that
share one storage (the two event APIs) name it in `storage`. `is_stored` is False for questions that are
answered and forgotten (reviews, bindings).
"""

from __future__ import annotations

from functools import cache
from typing import Final
from urllib.parse import unquote

from pilotage.api import claims, nodes, others, pods
from pilotage.api.rest_kind import Kind, PathMatch, Subresource

__all__ = ["KINDS", "Kind", "PathMatch", "Subresource", "by_kind", "by_path", "by_resource", "find"]

_ALL: Final = ("all",)
_CREATE: Final = ("create",)
_STATUS: Final = (Subresource("status"),)
_SCALE: Final = (*_STATUS, Subresource("scale", kind="Scale", group="autoscaling", version="v1"))
_POD: Final = (
    *_STATUS,
    Subresource("binding", _CREATE, "Binding", "", "v1"),
    Subresource("eviction", _CREATE, "Eviction", "policy", "v1"),
    Subresource("resize"),
    Subresource("ephemeralcontainers"),
    Subresource("log", ("get",)),
)
_TOKEN: Final = (Subresource("token", _CREATE, "TokenRequest", "authentication.k8s.io", "v1"),)
_NAMESPACE: Final = (*_STATUS, Subresource("finalize", ("update",)))

_APPS: Final = "apps"
_STORAGE: Final = "storage.k8s.io"
_RESOURCE: Final = "resource.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_AUTHORIZATION: Final = "authorization.k8s.io"

_CORE_KINDS: Final = (
    Kind("", "v1", "bindings", "Binding", verbs=_CREATE, is_stored=False),
    Kind("", "v1", "configmaps", "ConfigMap", ("cm",)),
    Kind("", "v1", "endpoints", "Endpoints", ("ep",)),
    Kind("", "v1", "events", "Event", ("ev",)),
    Kind("", "v1", "limitranges", "LimitRange", ("limits",)),
    Kind("", "v1", "namespaces", "Namespace", ("ns",), False, subresources=_NAMESPACE, view=others.Namespace),
    Kind("", "v1", "nodes", "Node", ("no",), False, subresources=_STATUS, view=nodes.Node),
    Kind(
        "",
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        ("pvc",),
        subresources=_STATUS,
        view=others.PersistentVolumeClaim,
    ),
    Kind(
        "",
        "v1",
        "persistentvolumes",
        "PersistentVolume",
        ("pv",),
        False,
        subresources=_STATUS,
        view=others.PersistentVolume,
    ),
    Kind("", "v1", "pods", "Pod", ("po",), categories=_ALL, subresources=_POD, view=pods.Pod),
    Kind("", "v1", "podtemplates", "PodTemplate"),
    Kind(
        "",
        "v1",
        "replicationcontrollers",
        "ReplicationController",
        ("rc",),
        categories=_ALL,
        subresources=_SCALE,
        view=others.ReplicationController,
    ),
    Kind("", "v1", "resourcequotas", "ResourceQuota", ("quota",), subresources=_STATUS),
    Kind("", "v1", "secrets", "Secret"),
    Kind("", "v1", "serviceaccounts", "ServiceAccount", ("sa",), subresources=_TOKEN),
    Kind(
        "", "v1", "services", "Service", ("svc",), categories=_ALL, subresources=_STATUS, view=others.Service
    ),
)

_WORKLOAD_KINDS: Final = (
    Kind(_APPS, "v1", "controllerrevisions", "ControllerRevision"),
    Kind(_APPS, "v1", "daemonsets", "DaemonSet", ("ds",), categories=_ALL, subresources=_STATUS),
    Kind(_APPS, "v1", "deployments", "Deployment", ("deploy",), categories=_ALL, subresources=_SCALE),
    Kind(
        _APPS,
        "v1",
        "replicasets",
        "ReplicaSet",
        ("rs",),
        categories=_ALL,
        subresources=_SCALE,
        view=others.ReplicaSet,
    ),
    Kind(
        _APPS,
        "v1",
        "statefulsets",
        "StatefulSet",
        ("sts",),
        categories=_ALL,
        subresources=_SCALE,
        view=others.StatefulSet,
    ),
    Kind("batch", "v1", "cronjobs", "CronJob", ("cj",), categories=_ALL, subresources=_STATUS),
    Kind("batch", "v1", "jobs", "Job", categories=_ALL, subresources=_STATUS),
    Kind(
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        ("hpa",),
        categories=_ALL,
        subresources=_STATUS,
    ),
    Kind(
        "policy",
        "v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        ("pdb",),
        subresources=_STATUS,
        view=others.PodDisruptionBudget,
    ),
    Kind(
        "scheduling.k8s.io",
        "v1",
        "priorityclasses",
        "PriorityClass",
        ("pc",),
        False,
        view=others.PriorityClass,
    ),
)

_CLUSTER_KINDS: Final = (
    Kind("coordination.k8s.io", "v1", "leases", "Lease"),
    Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    Kind("events.k8s.io", "v1", "events", "Event", ("ev",), storage="events"),
    Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False),
    Kind(_STORAGE, "v1", "csidrivers", "CSIDriver", namespaced=False, view=others.CSIDriver),
    Kind(_STORAGE, "v1", "csinodes", "CSINode", namespaced=False, view=others.CSINode),
    Kind(_STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity", view=others.CSIStorageCapacity),
    Kind(_STORAGE, "v1", "storageclasses", "StorageClass", ("sc",), False, view=others.StorageClass),
    Kind(
        _STORAGE,
        "v1",
        "volumeattachments",
        "VolumeAttachment",
        namespaced=False,
        subresources=_STATUS,
        view=others.VolumeAttachment,
    ),
    Kind(_RESOURCE, "v1", "deviceclasses", "DeviceClass", namespaced=False),
    Kind(_RESOURCE, "v1", "resourceclaims", "ResourceClaim", subresources=_STATUS, view=claims.ResourceClaim),
    Kind(_RESOURCE, "v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
    Kind(_RESOURCE, "v1", "resourceslices", "ResourceSlice", namespaced=False),
)

_ACCESS_KINDS: Final = (
    Kind(_NETWORKING, "v1", "ingressclasses", "IngressClass", namespaced=False),
    Kind(_NETWORKING, "v1", "ingresses", "Ingress", ("ing",), subresources=_STATUS),
    Kind(_NETWORKING, "v1", "networkpolicies", "NetworkPolicy", ("netpol",)),
    Kind(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    Kind(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
    Kind(_RBAC, "v1", "rolebindings", "RoleBinding"),
    Kind(_RBAC, "v1", "roles", "Role"),
    Kind(
        "authentication.k8s.io",
        "v1",
        "tokenreviews",
        "TokenReview",
        (),
        False,
        verbs=_CREATE,
        is_stored=False,
    ),
    Kind(
        "authentication.k8s.io",
        "v1",
        "selfsubjectreviews",
        "SelfSubjectReview",
        (),
        False,
        verbs=_CREATE,
        is_stored=False,
    ),
    Kind(
        _AUTHORIZATION,
        "v1",
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        verbs=_CREATE,
        is_stored=False,
    ),
    Kind(
        _AUTHORIZATION,
        "v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        (),
        False,
        verbs=_CREATE,
        is_stored=False,
    ),
    Kind(
        _AUTHORIZATION,
        "v1",
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        (),
        False,
        verbs=_CREATE,
        is_stored=False,
    ),
    Kind(
        _AUTHORIZATION,
        "v1",
        "subjectaccessreviews",
        "SubjectAccessReview",
        (),
        False,
        verbs=_CREATE,
        is_stored=False,
    ),
)

KINDS: Final = (*_CORE_KINDS, *_WORKLOAD_KINDS, *_CLUSTER_KINDS, *_ACCESS_KINDS)

_BY_RESOURCE: Final = {kind.resource: kind for kind in KINDS}
_BY_KIND: Final = {(kind.api_version, kind.kind): kind for kind in KINDS}
_BY_ROOT: Final = {(kind.root, kind.plural): kind for kind in KINDS}


def by_resource(resource: str) -> Kind | None:
    """The kind of `pods`, `deployments.apps`, ..."""
    return _BY_RESOURCE.get(resource)


def by_kind(api_version: str, kind: str) -> Kind | None:
    """The kind of an object's `apiVersion` and `kind`."""
    return _BY_KIND.get((api_version, kind))


def find(name: str) -> Kind | None:
    """The kind that a person means: plural, singular, short name or kind, with a group or without."""
    return _names().get(name.lower())


@cache
def _names() -> dict[str, Kind]:
    """Earlier kinds of the table win, exact resources win over everything."""
    names: dict[str, Kind] = {}
    for kind in KINDS:
        for name in (kind.plural, kind.singular, *kind.short_names):
            names.setdefault(name, kind)
            names.setdefault(f"{name}.{kind.group}", kind)
            names.setdefault(f"{name}.{kind.version}.{kind.group}", kind)
    return names | _BY_RESOURCE


def by_path(path: str) -> PathMatch | None:
    """What a REST path (without query) names, None when it is no path of a known kind.

    A namespaced kind without a namespace names the list over all of them.
    """
    parts = [unquote(part) if "%" in part else part for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 3:
        root, rest = f"/api/{parts[1]}", parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        root, rest = f"/apis/{parts[1]}/{parts[2]}", parts[3:]
    else:
        return None
    namespace, rest = _namespace(root, rest)
    kind = _BY_ROOT.get((root, rest[0]))
    if kind is None or len(rest) > 3 or "" in rest or (namespace and not kind.namespaced):
        return None
    name, subresource = (*rest[1:], "", "")[:2]
    if name and kind.namespaced and not namespace:
        return None
    return PathMatch(kind, namespace, name, subresource)


def _namespace(root: str, rest: list[str]) -> tuple[str, list[str]]:
    """Splits `namespaces/<ns>/` off, unless the path names a namespace itself or a subresource of it."""
    if len(rest) < 3 or rest[0] != "namespaces" or not rest[1]:
        return "", rest
    kind = _BY_ROOT.get((root, "namespaces"))
    if len(rest) == 3 and kind is not None and kind.subresource(rest[2]) is not None:
        return "", rest
    return rest[1], rest[2:]
