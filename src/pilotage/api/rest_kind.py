"""What a kind is on the REST API: names, paths, verbs, subresources. The table of kinds is `kinds.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from pilotage.api.meta import KubeObject

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS: Final = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A path under an object. An empty `kind` is the kind of the object itself."""

    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    kind: str = ""
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One resource of one API version. Each exists once: identity is equality."""

    group: str
    version: str
    plural: str
    kind: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    view: type[KubeObject] | None = None
    storage: str = ""
    is_stored: bool = True

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def resource(self) -> str:
        """`pods`, `deployments.apps`: the string that names the kind in events, keys and calls."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage_resource(self) -> str:
        """The `resource` under which objects are kept."""
        return self.storage or self.resource

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """`/api/v1` or `/apis/<group>/<version>`"""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def subresource(self, name: str) -> Subresource | None:
        return next((sub for sub in self.subresources if sub.name == name), None)

    def collection_path(self, namespace: str = "") -> str:
        """Path of the list: of one namespace, or of all when it is empty (or the kind has none)."""
        if self.namespaced and namespace:
            return f"{self.root}/namespaces/{quote(namespace, safe='')}/{self.plural}"
        return f"{self.root}/{self.plural}"

    def object_path(self, namespace: str, name: str, subresource: str = "") -> str:
        """Path of one object or of a subresource of it. Raises ValueError when the namespace is missing."""
        if self.namespaced and not namespace:
            raise ValueError(f"{self.resource} {name!r} needs a namespace")
        path = f"{self.collection_path(namespace)}/{quote(name, safe=':')}"
        return f"{path}/{subresource}" if subresource else path


class PathMatch(NamedTuple):
    """What a REST path names. Empty texts where it names none."""

    kind: Kind
    namespace: str
    name: str
    subresource: str
