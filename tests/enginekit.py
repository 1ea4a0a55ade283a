"""An engine with tiny plugins, and a small world around it that answers effects: for engine tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from pilotage.api.nodes import Node
from pilotage.api.pods import Pod
from pilotage.framework.calls import BindPod, CallResult, Outcome, PatchPodStatus, RecordEvent
from pilotage.framework.plugin import Plugin
from pilotage.framework.registry import Registry
from pilotage.framework.settings import EXTENSION_POINTS, PluginRef, ProfileSettings, Settings
from pilotage.plugins import DEFAULT_MULTIPOINT, default_registry
from pilotage.scheduling.engine import Engine
from pilotage.scheduling.messages import CallFinished, Deleted, Effect, Event, Submit, Tick, Upserted

E = TypeVar("E", bound=Effect)

DONE = Outcome(CallResult.DONE)
REFUSED = Outcome(CallResult.FAILED, "refused", 403, "Forbidden")


def merged(*trees: Mapping[str, Any]) -> dict[str, Any]:
    """Trees put over one another, deeply."""
    result: dict[str, Any] = {}
    for tree in trees:
        for key, value in tree.items():
            below = result.get(key)
            both = isinstance(value, Mapping) and isinstance(below, Mapping)
            result[key] = merged(below, value) if both else value
    return result


class World:
    """Objects as an API server would show them, with rising resourceVersions, and the engine's clock."""

    def __init__(
        self,
        *plugins: type[Plugin] | Plugin,
        names: Sequence[str] = ("default-scheduler",),
        defaults: bool = True,
        **engine: Any,
    ) -> None:
        registry = default_registry()
        refs = [
            ref for ref in DEFAULT_MULTIPOINT if defaults or ref.name in ("PrioritySort", "DefaultBinder")
        ]
        refs = [PluginRef(_add(registry, plugin)) for plugin in plugins] + refs
        points = {point: tuple(refs) for point in EXTENSION_POINTS}
        settings = Settings(
            tuple(ProfileSettings(name, points) for name in names), gates=engine.pop("gates", {})
        )
        self.engine = Engine(settings, registry, seed=engine.pop("seed", 1), **engine)
        self.now = 1000.0
        self.version = 0
        self.trees: dict[str, dict[str, Any]] = {}
        self.effects: list[Effect] = []

    # -- facts -----------------------------------------------------------------------------------

    def send(self, event: Event) -> list[Effect]:
        effects = self.engine.handle(event, self.now)
        self.effects += effects
        return effects

    def node(self, name: str, cpu: str = "4", *changes: Mapping[str, Any], pods: str = "110") -> list[Effect]:
        amounts = {"cpu": cpu, "memory": "16Gi", "pods": pods}
        tree = merged(self._known(name, f"node-{name}"), {"status": {"allocatable": amounts}}, *changes)
        return self._show("nodes", name, tree, Node)

    def pod(self, name: str, cpu: str | None = None, *changes: Mapping[str, Any]) -> list[Effect]:
        """Adds a pod or changes it."""
        spec: dict[str, Any] = {"spec": {"priority": 0}}
        if cpu is not None or f"ns/{name}" not in self.trees:
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu or "1"}}}
            spec = {"spec": {"containers": [container]}}
        key = f"ns/{name}"
        metadata = {"metadata": {"namespace": "ns", "generation": 1}}
        return self._show("pods", key, merged(metadata, self._known(key, f"uid-{name}"), spec, *changes), Pod)

    def bind(self, name: str, node: str) -> list[Effect]:
        """The informer shows the pod bound."""
        bound = {"nodeName": node}
        status = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
        return self.pod(name, None, {"spec": bound, "status": status})

    def _known(self, key: str, uid: str) -> dict[str, Any]:
        metadata = {"name": key.rpartition("/")[2], "uid": uid}
        return self.trees.get(key, {"metadata": metadata})

    def _show(self, resource: str, key: str, tree: dict[str, Any], view: type[Any]) -> list[Effect]:
        self.version += 1
        tree = merged(tree, {"metadata": {"resourceVersion": str(self.version)}})
        self.trees[key] = tree
        return self.send(Upserted(resource, msgspec.convert(tree, view)))

    def show_again(self, name: str) -> list[Effect]:
        return self.send(Upserted("pods", msgspec.convert(self.trees[f"ns/{name}"], Pod)))

    def delete(self, name: str) -> list[Effect]:
        return self.send(Deleted("pods", msgspec.convert(self.trees.pop(f"ns/{name}"), Pod)))

    def delete_node(self, name: str) -> list[Effect]:
        return self.send(Deleted("nodes", msgspec.convert(self.trees.pop(name), Node)))

    def finish(self, submit: Submit, outcome: Outcome = DONE) -> list[Effect]:
        return self.send(CallFinished(submit.ticket, outcome))

    # -- time ------------------------------------------------------------------------------------

    def schedule(self, limit: int = 100) -> list[Effect]:
        effects = self.engine.schedule(self.now, limit)
        self.effects += effects
        self.engine.check_invariants()
        return effects

    def wait(self, seconds: float) -> list[Effect]:
        """Lets time pass, waking the engine as a driver would, without deciding pods."""
        until = self.now + seconds
        effects: list[Effect] = []
        while (wakeup := self.engine.next_wakeup()) is not None and wakeup <= until:
            self.now = max(self.now, wakeup)
            effects += self.send(Tick())
        self.now = until
        return effects + self.send(Tick())

    # -- looking ---------------------------------------------------------------------------------

    def position(self, name: str, uid: str = "") -> str:
        return self.engine.position(uid or f"uid-{name}").value

    def lengths(self) -> tuple[int, int, int, int]:
        now = self.engine.statistics()
        return (now.active, now.backoff, now.unschedulable, now.gated)

    def story(self, name: str, uid: str = "") -> str:
        return "\n".join(entry.text for entry in self.engine.story(uid or f"uid-{name}"))


def _add(registry: Registry, plugin: type[Plugin] | Plugin) -> str:
    registry.register(
        plugin.name, plugin if isinstance(plugin, type) else lambda args, handle: _with(plugin, handle)
    )
    return plugin.name


def _with(plugin: Plugin, handle: Any) -> Plugin:
    plugin._handle = handle
    return plugin


def only(effects: Sequence[Effect], kind: type[E]) -> list[E]:
    return [effect for effect in effects if isinstance(effect, kind)]


def binds(effects: Sequence[Effect]) -> list[tuple[str, str]]:
    """(pod, node) of every bind call."""
    return [(s.call.key.name, s.call.node) for s in only(effects, Submit) if isinstance(s.call, BindPod)]


def bind_submit(effects: Sequence[Effect]) -> Submit:
    """The one bind call among the effects."""
    (found,) = [s for s in only(effects, Submit) if isinstance(s.call, BindPod)]
    assert found.awaited
    return found


def patches(effects: Sequence[Effect]) -> list[PatchPodStatus]:
    return [s.call for s in only(effects, Submit) if isinstance(s.call, PatchPodStatus)]


def notes(effects: Sequence[Effect]) -> list[tuple[str, str, str]]:
    """(type, reason, note) of every event that is recorded."""
    calls = [s.call for s in only(effects, Submit)]
    return [(c.type, c.reason, c.note) for c in calls if isinstance(c, RecordEvent)]
