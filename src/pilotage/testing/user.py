"""What a person or a test does with the cluster: objects by kind and name, reads straight from the store.

Laws: reads leave no trace in the request log and need no time; writes go through the API server like
anybody's, as client `user`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pilotage.api import kinds
from pilotage.api.kinds import Kind
from pilotage.client.api import ApiClient, ApiError, PatchType
from pilotage.testing import builders
from pilotage.testing.faults import Faults
from pilotage.testing.inprocess import Server

Tree = dict[str, Any]
_CONFLICT = 409


class User:
    """`do` runs a coroutine to its end (see `Harness.do`)."""

    def __init__(self, server: Server, faults: Faults, do: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._server = server
        self._do = do
        self.api = ApiClient(server.transport(faults, "user"), field_manager="user")

    # -- writing

    def create(self, *objects: Mapping[str, Any]) -> list[Tree]:
        """Creates objects of any kind; missing namespaces and the builders' PriorityClasses come along."""
        return [self._create(dict(body)) for body in objects]

    def _create(self, body: Tree) -> Tree:
        kind = kind_of(body)
        namespace = (body.get("metadata") or {}).get("namespace", "")
        if kind.namespaced:
            namespace = namespace or "default"
            self._ensure_namespace(namespace)
        for spec in (
            body.get("spec") or {},
            ((body.get("spec") or {}).get("template") or {}).get("spec") or {},
        ):
            self._ensure_priority_class(spec.get("priorityClassName") or "")
        created: Tree = self._do(self.api.create(kind, body, namespace))
        return created

    def _ensure_namespace(self, name: str) -> None:
        if self.find("namespaces", name) is None:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self._do(self.api.create(named("namespaces"), body))

    def _ensure_priority_class(self, name: str) -> None:
        number = name.removeprefix("priority-").replace("minus-", "-")
        if name.startswith("priority-") and number.lstrip("-").isdecimal() and not self._has_class(name):
            self._do(self.api.create(named("priorityclasses"), builders.priority_class(int(number))))

    def _has_class(self, name: str) -> bool:
        return self.find("priorityclasses.scheduling.k8s.io", name) is not None

    def delete(
        self, plural: str, name: str, namespace: str = "default", *, grace: int | None = None, **more: Any
    ) -> None:
        """`plural` may be any name that kubectl knows. More: `propagation`, `uid`."""
        kind = named(plural)
        where = namespace if kind.namespaced else ""
        self._do(self.api.delete(kind, name, where, grace_seconds=grace, **more))

    def patch(
        self,
        plural: str,
        name: str,
        body: Mapping[str, Any],
        namespace: str = "default",
        *,
        subresource: str = "",
        patch_type: PatchType = PatchType.STRATEGIC,
    ) -> Tree:
        kind = named(plural)
        where = namespace if kind.namespaced else ""
        patched: Tree = self._do(
            self.api.patch(kind, name, body, where, subresource=subresource, patch_type=patch_type)
        )
        return patched

    def label(self, plural: str, name: str, namespace: str = "default", **labels: str | None) -> Tree:
        """None removes a label."""
        return self.patch(plural, name, {"metadata": {"labels": labels}}, namespace)

    def scale(
        self, name: str, replicas: int, namespace: str = "default", plural: str = "deployments"
    ) -> Tree:
        body = {"spec": {"replicas": replicas}}
        return self.patch(plural, name, body, namespace, subresource="scale", patch_type=PatchType.MERGE)

    def cordon(self, node: str, on: bool = True) -> Tree:
        return self.patch("nodes", node, {"spec": {"unschedulable": on or None}})

    def bind(self, name: str, node: str, namespace: str = "default") -> None:
        """By hand, past the scheduler."""
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        self._do(self.api.create(named("pods"), body, namespace, name=name, subresource="binding"))

    def evict(self, name: str, namespace: str = "default") -> bool:
        """False where a PodDisruptionBudget forbids it."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        try:
            self._do(self.api.create(named("pods"), body, namespace, name=name, subresource="eviction"))
        except ApiError as error:
            if error.status == 429:
                return False
            raise
        return True

    # -- reading

    def find(self, plural: str, name: str, namespace: str = "default") -> Tree | None:
        return self._server.read(named(plural), name, namespace)

    def get(self, plural: str, name: str, namespace: str = "default") -> Tree:
        """Raises LookupError."""
        found = self.find(plural, name, namespace)
        if found is None:
            raise LookupError(f"no {plural} {namespace}/{name}")
        return found

    def objects(self, plural: str, namespace: str = "") -> list[Tree]:
        """In the order of keys; of all namespaces without one."""
        return self._server.read_all(named(plural), namespace)

    def events(self, name: str, namespace: str = "default", reason: str = "") -> list[Tree]:
        """Events about the object of that name."""
        return [
            event
            for event in self.objects("events", namespace)
            if name in (_about(event).get("name"),) and (not reason or event.get("reason") == reason)
        ]


def _about(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return event.get("regarding") or event.get("involvedObject") or {}


def kind_of(body: Mapping[str, Any]) -> Kind:
    kind = kinds.by_kind(body.get("apiVersion", "v1"), body.get("kind", ""))
    if kind is None:
        raise LookupError(f"no kind {body.get('apiVersion')}/{body.get('kind')}")
    return kind


def named(plural: str) -> Kind:
    kind = kinds.by_resource(plural) or kinds.find(plural)
    if kind is None:
        raise LookupError(f"no kind is called {plural!r}")
    return kind
