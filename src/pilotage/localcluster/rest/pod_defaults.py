"""Defaults of pod specs: those of every template, and those that only a Pod itself gets.

Laws: a field that is present keeps its value; applying twice changes nothing more. Quantities are canonical
already. A template gets no requests from limits, no enableServiceLinks and no host ports: the pods made of
it do.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pilotage.api import requests
from pilotage.api.pods import Pod
from pilotage.api.quantity import NANO, canonical
from pilotage.localcluster.rest.trees import child, children, made, set_absent
from pilotage.localcluster.store import Tree

CONTAINER_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")
_SPEC: Final = (
    ("restartPolicy", "Always"),
    ("dnsPolicy", "ClusterFirst"),
    ("terminationGracePeriodSeconds", 30),
    ("schedulerName", "default-scheduler"),
)
_CONTAINER: Final = (
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
)
_PROBE: Final = (
    ("timeoutSeconds", 1),
    ("periodSeconds", 10),
    ("successThreshold", 1),
    ("failureThreshold", 3),
)
_HTTP: Final = (("path", "/"), ("scheme", "HTTP"))
_PROTOCOL: Final = (("protocol", "TCP"),)
_FILE_MODE: Final = (("defaultMode", 0o644),)
_API_VERSION: Final = (("apiVersion", "v1"),)
_VOLUME_MODE: Final = (("volumeMode", "Filesystem"),)
_WITH_MODE: Final = ("secret", "configMap", "downwardAPI", "projected")


def default_pod(tree: Tree) -> None:
    """A Pod's spec."""
    spec = made(tree, "spec")
    spec.setdefault("enableServiceLinks", True)
    default_pod_spec(spec)
    for field in ("containers", "initContainers"):
        for container in children(spec, field):
            _requests_from_limits(container)
            if spec.get("hostNetwork") is True:
                _host_ports(container)
    if "resources" in spec:
        _pod_level_requests(tree, spec)


def default_template(template: Tree) -> None:
    """`spec.template` of a workload."""
    made(template, "metadata")
    default_pod_spec(made(template, "spec"))


def default_pod_spec(spec: Tree) -> None:
    """What pods and templates have in common."""
    set_absent(spec, _SPEC)
    spec.setdefault("securityContext", {})
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    elif "serviceAccount" in spec:
        spec["serviceAccountName"] = spec["serviceAccount"]
    for field in CONTAINER_LISTS:
        for container in children(spec, field):
            _default_container(container)
    for volume in children(spec, "volumes"):
        _default_volume(volume)


def _default_container(container: Tree) -> None:
    container.setdefault("resources", {})
    set_absent(container, _CONTAINER)
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image"))
    for port in children(container, "ports"):
        set_absent(port, _PROTOCOL)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := child(container, name)) is not None:
            _default_probe(probe)
    if lifecycle := child(container, "lifecycle"):
        for hook in ("postStart", "preStop"):
            if http := child(child(lifecycle, hook), "httpGet"):
                set_absent(http, _HTTP)
    for variable in children(container, "env"):
        if (reference := child(child(variable, "valueFrom"), "fieldRef")) is not None:
            set_absent(reference, _API_VERSION)


def _pull_policy(image: object) -> str:
    """Always for `:latest` and for no tag; a digest pins the image."""
    if not isinstance(image, str) or "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_probe(probe: Tree) -> None:
    set_absent(probe, _PROBE)
    if (http := child(probe, "httpGet")) is not None:
        set_absent(http, _HTTP)
    if (grpc := child(probe, "grpc")) is not None:
        grpc.setdefault("service", "")


def _requests_from_limits(container: Tree) -> None:
    resources = child(container, "resources")
    limits = child(resources, "limits")
    if resources is not None and limits:
        requested = made(resources, "requests")
        for name, quantity in limits.items():
            requested.setdefault(name, quantity)


def _host_ports(container: Tree) -> None:
    for port in children(container, "ports"):
        if not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort", 0)


def _pod_level_requests(tree: Tree, spec: Tree) -> None:
    """Pod-level limits without requests: the containers' sum where they ask, else the limit."""
    resources = child(spec, "resources")
    limits = child(resources, "limits")
    if resources is None or not limits:
        return
    requested = made(resources, "requests")
    for name, amount in requests.exact_requests(msgspec.convert(tree, Pod), pod_level=False).items():
        if requests.is_pod_level(name):
            requested.setdefault(name, _written(name, amount))
    for name, quantity in limits.items():
        if requests.is_pod_level(name):
            requested.setdefault(name, quantity)


def _written(resource: str, nanos: int) -> str:
    if resource != requests.CPU and nanos % (1024 * NANO) == 0:
        return canonical(f"{nanos // (1024 * NANO)}Ki")
    return canonical(f"{nanos}n")


def _default_volume(volume: Tree) -> None:
    if len(volume) == 1 and "name" in volume:
        volume["emptyDir"] = {}
    for name in _WITH_MODE:
        if (content := child(volume, name)) is not None:
            set_absent(content, _FILE_MODE)
    _field_references(child(volume, "downwardAPI"))
    for source in children(child(volume, "projected"), "sources"):
        _field_references(child(source, "downwardAPI"))
        if (token := child(source, "serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", 3600)
    if (path := child(volume, "hostPath")) is not None:
        path.setdefault("type", "")
    if (template := child(child(volume, "ephemeral"), "volumeClaimTemplate")) is not None:
        set_absent(made(template, "spec"), _VOLUME_MODE)


def _field_references(downward: Tree | None) -> None:
    for item in children(downward, "items"):
        if (reference := child(item, "fieldRef")) is not None:
            set_absent(reference, _API_VERSION)
