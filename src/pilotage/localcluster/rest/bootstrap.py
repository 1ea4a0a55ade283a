"""What is there before anybody created anything: namespaces, priority classes, what clients look up."""

from __future__ import annotations

from pilotage.localcluster.rest import admission
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.timestamps import time_text
from pilotage.localcluster.store import Store, Tree

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def bootstrap(store: Store, ids: Ids, now: float, *, has_storage: bool = False) -> None:
    """Creates them in an empty store. `has_storage`: somebody makes volumes, so there is a default class."""

    def create(resource: str, tree: Tree) -> None:
        tree["metadata"] |= {"uid": ids.uid(), "creationTimestamp": time_text(now)}
        store.create(resource, tree)

    for name in _NAMESPACES:
        create("namespaces", _namespace(name))
    for tree in admission.SYSTEM_PRIORITY_CLASSES:
        copy = {**tree, "metadata": {**tree["metadata"], "generation": 1}}
        create("priorityclasses.scheduling.k8s.io", copy)
    create("services", _kubernetes_service())
    create("configmaps", _authentication())
    if has_storage:
        create("storageclasses.storage.k8s.io", _standard_class())


def _namespace(name: str) -> Tree:
    return {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _kubernetes_service() -> Tree:
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.96.0.1",
            "clusterIPs": ["10.96.0.1"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
        },
        "status": {"loadBalancer": {}},
    }


def _authentication() -> Tree:
    """kube-scheduler reads it at start for its own serving port; empty means nobody is delegated to."""
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {},
    }


def _standard_class() -> Tree:
    """As local clusters have it: claims that name no class get a volume where their pod goes."""
    return {
        "kind": "StorageClass",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {
            "name": "standard",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "pilotage.dev/simulated-volumes",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
