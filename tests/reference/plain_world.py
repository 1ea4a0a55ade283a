"""What the slow reference knows of a cluster: manifests in lists, told one after the other.

Written from the rules alone and for tests only: nothing of it is shared with the engine but the parsing of
quantities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from reference.plain_amounts import Amounts, requests, usage, usage_for_scoring

Tree = dict[str, Any]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Rejection:
    """Why a node cannot take the pod; `reasons` in any order."""

    plugin: str
    is_resolvable: bool
    reasons: tuple[str, ...]


@dataclass
class Image:
    size: int
    nodes: set[str]


@dataclass
class PlainWorld:
    """Every pod in `pods` has `spec.nodeName`; that node may be missing, and the pod then counts nowhere."""

    nodes: list[Tree] = field(default_factory=list)
    pods: list[Tree] = field(default_factory=list)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    services: list[Tree] = field(default_factory=list)
    controllers: list[Tree] = field(default_factory=list)
    nominated: list[tuple[Tree, str]] = field(default_factory=list)
    args: dict[str, Tree] = field(default_factory=dict)
    images: dict[str, Image] = field(default_factory=dict)
    # What a manifest occupies, computed once: manifests are replaced, never changed. By identity.
    amounts: dict[int, tuple[Tree, Amounts, Amounts]] = field(default_factory=dict)
    asked: dict[int, tuple[Tree, Amounts]] = field(default_factory=dict)

    def placed(self) -> Iterator[tuple[Tree, Tree]]:
        """Nodes and the pods on them, one pair for each pod."""
        by_name = {name_of(node): node for node in self.nodes}
        for pod in self.pods:
            if pod["spec"]["nodeName"] in by_name:
                yield by_name[pod["spec"]["nodeName"]], pod

    def pods_on(self, node: Tree) -> list[Tree]:
        return [pod for pod in self.pods if pod["spec"]["nodeName"] == name_of(node)]

    def with_pods(self, pods: list[Tree], node: str) -> PlainWorld:
        """The same cluster with these pods on that node as well."""
        more = [{**pod, "spec": {**pod["spec"], "nodeName": node}} for pod in pods]
        return replace(self, pods=self.pods + more)

    # Nodes come, change and go; one size per image name, that of the node which brought it

    def tell_node(self, node: Tree) -> None:
        names = [name_of(known) for known in self.nodes]
        if name_of(node) in names:
            index = names.index(name_of(node))
            self._drop_images(self.nodes[index])
            self.nodes[index] = node
        else:
            self.nodes.append(node)
        for image in node["status"].get("images") or []:
            for name in image["names"]:
                self.images.setdefault(name, Image(image["sizeBytes"], set())).nodes.add(name_of(node))

    def drop_node(self, node: Tree) -> None:
        self._drop_images(node)
        self.nodes = [known for known in self.nodes if name_of(known) != name_of(node)]

    def _drop_images(self, node: Tree) -> None:
        for name in list(self.images):
            self.images[name].nodes.discard(name_of(node))
            if not self.images[name].nodes:
                del self.images[name]

    # Amounts in use

    def requested(self, node: Tree) -> Amounts:
        return _sum(self._amounts(pod)[1] for pod in self.pods_on(node))

    def requested_for_scoring(self, node: Tree) -> Amounts:
        """cpu and memory with the scoring defaults."""
        return _sum(self._amounts(pod)[2] for pod in self.pods_on(node))

    def requests(self, pod: Tree) -> Amounts:
        """What an incoming pod asks for."""
        known = self.asked.get(id(pod))
        if known is None:
            known = self.asked[id(pod)] = (pod, requests(pod))
        return known[1]

    def _amounts(self, pod: Tree) -> tuple[Tree, Amounts, Amounts]:
        known = self.amounts.get(id(pod))
        if known is None:
            known = self.amounts[id(pod)] = (pod, usage(pod), usage_for_scoring(pod))
        return known


def _sum(of: Iterator[Amounts]) -> Amounts:
    total: Amounts = {}
    for amounts in of:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total


def name_of(tree: Tree) -> str:
    name: str = tree["metadata"]["name"]
    return name


def namespace_of(tree: Tree) -> str:
    namespace: str = tree["metadata"]["namespace"]
    return namespace


def labels_of(tree: Tree) -> dict[str, str]:
    return tree["metadata"].get("labels") or {}
