"""Random lives of a cluster with every feature: whoever waits at the end waits for a reason that is true.

An engine is told events one by one and every bind is carried out. When nothing more happens, and before
the periodic flush could hide a missed event, a second engine that knows only the present state decides
the pods that are left: it must not find a place for any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from enginekit import World, only
from pilotage.api.decode import convert_object
from pilotage.api.kinds import by_resource
from pilotage.framework.calls import BindPod, CallResult, Outcome
from pilotage.scheduling.messages import CallFinished, Deleted, Effect, Submit, Tick, Upserted
from reference.wide_source import MOMENT, NAMESPACES, WideSource

Tree = dict[str, Any]
Key = tuple[str, str, str]  # resource, namespace, name

# kube-scheduler wakes such a pod neither for a new node nor for a node's new labels; only the flush finds
# them (recorded as symmetric-node_added_big and its like), and so it has to be here.
KNOWN_HOLE = "existing pods anti-affinity rules"
QUIET_SECONDS = 25.0  # longer than any backoff, shorter than the periodic flush


@dataclass(frozen=True)
class Sizes:
    nodes: int
    bound: int
    waiting: int
    events: int


def key_of(resource: str, tree: Tree) -> Key:
    return resource, tree["metadata"].get("namespace", ""), tree["metadata"]["name"]


@dataclass
class Told:
    """An engine, and what it was told."""

    world: World = field(default_factory=World)
    trees: dict[Key, Tree] = field(default_factory=dict)
    version: int = 0

    def tell(self, resource: str, tree: Tree) -> list[Effect]:
        self.version += 1
        tree = {**tree, "metadata": {**tree["metadata"], "resourceVersion": str(self.version)}}
        self.trees[key_of(resource, tree)] = tree
        return self.world.send(Upserted(resource, _view(resource, tree)))

    def drop(self, resource: str, tree: Tree) -> list[Effect]:
        del self.trees[key_of(resource, tree)]
        return self.world.send(Deleted(resource, _view(resource, tree)))

    def all(self, resource: str) -> list[Tree]:
        return [tree for (kind, _, _), tree in self.trees.items() if kind == resource]


def _view(resource: str, tree: Tree) -> Any:
    kind = by_resource(resource)
    assert kind is not None
    return convert_object(kind, tree)


def binds(effects: list[Effect]) -> list[Submit]:
    return [submit for submit in only(effects, Submit) if isinstance(submit.call, BindPod)]


class Life:
    """One case: a seed and sizes."""

    def __init__(self, seed: int, sizes: Sizes) -> None:
        self.seed = seed
        self.sizes = sizes
        self.source = WideSource(seed, sizes.nodes)
        self.told = Told()
        self.log: list[str] = []
        self.is_calm = False  # from then on every bind is accepted

    # -- facts

    def pod(self, node: str = "") -> Tree:
        tree = self.source.pod(node=node, richness=0.5)
        tree["metadata"].setdefault("uid", tree["metadata"]["name"])
        tree["spec"]["preemptionPolicy"] = "Never"
        if not node and self.source.chance(0.15):
            tree["spec"]["schedulingGates"] = [{"name": "g"}]
        return tree

    def build(self) -> None:
        for name in NAMESPACES:
            self.namespace(name)
        for _ in range(self.sizes.nodes):
            self.tell("nodes", self.source.node())
        names = [tree["metadata"]["name"] for tree in self.told.all("nodes")]
        for _ in range(self.sizes.bound if names else 0):
            self.tell("pods", self.pod(self.source.one_of(*names)))

    def namespace(self, name: str) -> None:
        labels = {"kubernetes.io/metadata.name": name, **self.source.namespace_labels()}
        self.tell("namespaces", {"metadata": {"name": name, "labels": labels, "uid": name}})

    def tell(self, resource: str, tree: Tree) -> None:
        self.told.tell(resource, tree)

    def pods(self, *, bound: bool) -> list[Tree]:
        return [tree for tree in self.told.all("pods") if bool(tree["spec"].get("nodeName")) == bound]

    def with_meta(self, tree: Tree, **changes: Any) -> Tree:
        return {**tree, "metadata": {**tree["metadata"], **changes}}

    def with_spec(self, tree: Tree, **changes: Any) -> Tree:
        return {**tree, "spec": {**tree["spec"], **changes}}

    # -- events

    def disturb(self) -> None:
        kind = self.source.one_of(
            self.change_node,
            self.change_node,
            self.add_node,
            self.drop_node,
            self.change_bound,
            self.change_bound,
            self.drop_bound,
            self.drop_bound,
            self.change_waiting,
            self.add_bound,
            self.relabel_namespace,
        )
        self.log.append(f"t={self.told.world.now:g} {kind.__name__}: {kind()}")

    def change_node(self) -> str:
        """A part of it is drawn anew."""
        nodes = self.told.all("nodes")
        if not nodes:
            return ""
        old = self.source.one_of(*nodes)
        new = self.source.node_named(old["metadata"]["name"])
        part = self.source.one_of("labels", "spec", "allocatable", "features")
        if part == "labels":
            new = self.with_meta(old, labels=new["metadata"]["labels"])
        elif part == "spec":
            new = {**old, "spec": new["spec"]}
        else:
            field_name = "declaredFeatures" if part == "features" else "allocatable"
            new = {**old, "status": {**old["status"], field_name: new["status"].get(field_name)}}
        self.tell("nodes", new)
        return f"{new['metadata']['name']} {part}"

    def add_node(self) -> str:
        node = self.source.node()
        self.tell("nodes", node)
        return str(node["metadata"]["name"])

    def drop_node(self) -> str:
        nodes = self.told.all("nodes")
        if len(nodes) < 2:
            return ""
        node = self.source.one_of(*nodes)
        self.told.drop("nodes", node)
        return str(node["metadata"]["name"])

    def change_bound(self) -> str:
        pods = self.pods(bound=True)
        if not pods:
            return ""
        pod, how = self.source.one_of(*pods), self.source.one_of("labels", "leaving", "shrink")
        if how == "labels":
            pod = self.with_meta(pod, labels=self.source.pod_labels())
        elif how == "leaving":
            pod = self.with_meta(pod, deletionTimestamp=MOMENT)
        else:
            slim = [{**c, "resources": {}} for c in pod["spec"]["containers"]]
            pod = {**self.with_spec(pod, containers=slim, resources=None), "status": {}}
        self.tell("pods", pod)
        return f"{pod['metadata']['name']} {how}"

    def drop_bound(self) -> str:
        pods = self.pods(bound=True)
        if not pods:
            return ""
        pod = self.source.one_of(*pods)
        self.told.drop("pods", pod)
        return str(pod["metadata"]["name"])

    def add_bound(self) -> str:
        nodes = self.told.all("nodes")
        if not nodes:
            return ""
        pod = self.pod(self.source.one_of(*nodes)["metadata"]["name"])
        self.tell("pods", pod)
        return str(pod["metadata"]["name"])

    def change_waiting(self) -> str:
        pods = self.pods(bound=False)
        if not pods:
            return ""
        pod, how = self.source.one_of(*pods), self.source.one_of("labels", "tolerate", "gates", "note")
        if how == "labels":
            pod = self.with_meta(pod, labels=self.source.pod_labels())
        elif how == "tolerate":
            known = pod["spec"].get("tolerations") or []
            pod = self.with_spec(pod, tolerations=[*known, self.source.toleration()])
        elif how == "gates":
            pod = self.with_spec(pod, schedulingGates=[])
        else:
            pod = self.with_meta(pod, annotations={"note": str(self.told.version)})
        self.tell("pods", pod)
        return f"{pod['metadata']['name']} {how}"

    def relabel_namespace(self) -> str:
        name = self.source.one_of(*NAMESPACES)
        self.namespace(name)
        return name

    # -- a life

    def work(self) -> None:
        """All that can be decided is decided; every bind takes effect, shown before or after its answer."""
        while effects := self.told.world.schedule(5):
            for submit in binds(effects):
                self.bind(submit)

    def bind(self, submit: Submit) -> None:
        call = submit.call
        assert isinstance(call, BindPod)
        world, way = self.told.world, self.source.random.randrange(8)
        if way == 0 and not self.is_calm:
            world.send(CallFinished(submit.ticket, Outcome(CallResult.FAILED, "no", 403, "Forbidden")))
            return
        pod = self.told.trees["pods", call.key.namespace, call.key.name]
        if way % 2:
            world.send(CallFinished(submit.ticket, Outcome(CallResult.DONE)))
        self.tell("pods", self.with_spec(pod, nodeName=call.node))
        if not way % 2:
            world.send(CallFinished(submit.ticket, Outcome(CallResult.DONE)))

    def wait(self, seconds: float) -> None:
        world = self.told.world
        until = world.now + seconds
        while (wakeup := world.engine.next_wakeup()) is not None and wakeup <= until:
            world.now = max(world.now, wakeup)
            world.send(Tick())
            self.work()
        world.now = until

    def run(self) -> list[str]:
        """What is wrong at the end, each line one pod."""
        self.build()
        for _ in range(self.sizes.waiting):
            self.tell("pods", self.pod())
        self.work()
        for _ in range(self.sizes.events):
            self.disturb()
            if self.source.chance(0.8):
                self.work()
            self.wait(self.source.one_of(0.0, 0.0, 0.5, 3.0))
        self.is_calm = True
        self.clean_up()
        self.work()
        self.wait(QUIET_SECONDS)
        return self.judge()

    def clean_up(self) -> None:
        """What a cluster does by itself: leaving pods go, and those of nodes that are gone."""
        nodes = {tree["metadata"]["name"] for tree in self.told.all("nodes")}
        for pod in self.pods(bound=True):
            if pod["spec"]["nodeName"] not in nodes or "deletionTimestamp" in pod["metadata"]:
                self.told.drop("pods", pod)

    def after_flush(self) -> list[str]:
        """What is wrong when the periodic flush had its time too, which finds what events miss."""
        self.wait(360.0)
        return self.judge(holes=False)

    def judge(self, *, holes: bool = True) -> list[str]:
        engine = self.told.world.engine
        engine.check_invariants()
        waiting = [pod for pod in self.pods(bound=False) if not pod["spec"].get("schedulingGates")]
        homes = {pod["metadata"]["name"]: engine.position(pod["metadata"]["uid"]).value for pod in waiting}
        found = [f"{name} is in {home}" for name, home in homes.items() if holes and home != "unschedulable"]
        fresh = Told()
        for resource in ("namespaces", "nodes", "pods"):
            for tree in self.told.all(resource):
                fresh.tell(resource, tree)
        for submit in binds(fresh.world.schedule(1000)):
            assert isinstance(submit.call, BindPod)
            uid = submit.call.key.uid
            said = [entry.text for entry in engine.story(uid) if entry.text.startswith("attempt")][-1]
            if not holes or KNOWN_HOLE not in said:
                waits = sorted(engine.waits_on(uid))
                found.append(f"{submit.call.key.name} waits on {waits} and fits {submit.call.node}")
        return found
