"""Facts about objects: into the cluster state, then to whoever waits for them (spec/queue.md, section 7).

Laws
- The cluster state decides what a fact changes; repeated and outdated ones change nothing here either.
- A pod is in the queue only while the informer shows it unbound, readable, of a known profile and not
  assumed by us; or bound with a deferred resize (`deferred.py`).
- A pod that leaves takes everything with it: queue, ask, binding, nomination, wishes, story.
"""

from __future__ import annotations

from pilotage.api.meta import KubeObject
from pilotage.api.nodes import Node
from pilotage.api.pods import Pod
from pilotage.framework.events import Resource
from pilotage.scheduling import cluster_events
from pilotage.scheduling.binding import Bindings
from pilotage.scheduling.cycle import Cycles
from pilotage.scheduling.deferred import DeferredResizes
from pilotage.scheduling.enginestate import EngineState
from pilotage.scheduling.failure import FailureHandler
from pilotage.scheduling.messages import Deleted, Undecodable, Upserted
from pilotage.scheduling.placements import placed
from pilotage.scheduling.preemption import Preemptions
from pilotage.state.cluster import NodeChange, PodChange
from pilotage.state.podinfo import PodInfo

PODS = "pods"
NODES = "nodes"


class Informers:
    def __init__(
        self,
        state: EngineState,
        cycles: Cycles,
        bindings: Bindings,
        failures: FailureHandler,
        preemptions: Preemptions,
        resizes: DeferredResizes,
    ) -> None:
        self._state = state
        self._cycles = cycles
        self._bindings = bindings
        self._failures = failures
        self._preemptions = preemptions
        self._resizes = resizes
        # UIDs of unbound pods whose schedulerName is none of our profiles.
        self.foreign: set[str] = set()

    # -- entry points ----------------------------------------------------------------------------

    def upserted(self, event: Upserted) -> None:
        thing = event.object
        if isinstance(thing, Pod):
            self._upsert_pod(PodInfo(thing))
        elif isinstance(thing, Node):
            for change in self._state.cluster.upsert_node(thing):
                self._node_changed(change)
        else:
            for changed in self._state.cluster.upsert_object(event.resource, thing):
                self._object_changed(event.resource, changed.old, changed.new)

    def deleted(self, event: Deleted) -> None:
        meta = event.object.metadata
        if event.resource == PODS:
            self._state.undecodable.pop(meta.uid, None)
            nominated = self._state.cluster.nominations.node_of(meta.uid)
            self._pods_changed(self._state.cluster.delete_pod(meta.uid), nominated)
            self._forget(meta.uid)
        elif event.resource == NODES:
            for change in self._state.cluster.delete_node(meta.name, meta.uid):
                self._node_changed(change)
        else:
            for changed in self._state.cluster.delete_object(event.resource, event.object):
                self._object_changed(event.resource, changed.old, changed.new)

    def undecodable(self, event: Undecodable) -> None:
        """A node gets no more pods; a pod of ours stays pending and says why; others keep their state."""
        self._state.outbox.log(
            "error", f"cannot read {event.resource} {event.namespace}/{event.name}: {event.error}"
        )
        if event.resource == NODES:
            for change in self._state.cluster.upsert_unreadable_node(event.name, event.uid, event.error):
                self._node_changed(change)
        elif event.resource == PODS and event.uid:
            self._undecodable_pod(event)

    def _undecodable_pod(self, event: Undecodable) -> None:
        state, known = self._state, self._state.cluster.pod(event.uid)
        bound = event.node_name or (known is not None and known.is_bound)
        if bound or event.scheduler_name not in state.profiles:
            return
        if state.undecodable.get(event.uid) == event.error:
            return
        state.undecodable[event.uid] = event.error
        self._cycles.abandon(event.uid)
        state.queue.delete(event.uid)
        self._failures.report_undecodable(event)

    # -- pods ------------------------------------------------------------------------------------

    def _upsert_pod(self, info: PodInfo) -> None:
        replaced = self._state.cluster.pod_by_key(info.key)
        uid = replaced.uid if replaced is not None else info.uid
        nominated = self._state.cluster.nominations.node_of(uid)
        changes = self._state.cluster.upsert_pod(info)
        if changes or info.is_terminal:
            self._state.undecodable.pop(info.uid, None)
        self._pods_changed(changes, nominated)
        if info.is_terminal:
            self._forget(info.uid)

    def _pods_changed(self, changes: tuple[PodChange, ...], nominated: str) -> None:
        for change in changes:
            if change.new is None:
                self._pod_gone(change, nominated)
            elif change.new.is_bound:
                self._pod_bound(change, change.new)
                self._resizes.look(change.new)
            else:
                self._pod_waits(change, change.new)

    def _pod_gone(self, change: PodChange, nominated: str) -> None:
        assert change.old is not None
        old = change.old
        self._forget(old.uid)
        if change.old_node:
            self._state.notify(cluster_events.pod_deleted(), placed(old, change.old_node), None)
        elif nominated:
            self._state.nomination_given_up(old, nominated)

    def _forget(self, uid: str) -> None:
        """The pod left: nothing of it stays."""
        state = self._state
        had_writes = uid in self._failures.writer.pods or uid in self._bindings or uid in self._preemptions
        self._cycles.abandon(uid)
        self._bindings.abort(uid, "the pod is gone")
        self._resizes.gone(uid)
        self._preemptions.gone(uid)
        state.queue.delete(uid)
        self.foreign.discard(uid)
        self._failures.writer.forget(uid)
        if had_writes:
            state.outbox.cancel(uid, "the pod is gone")
        state.stories.forget(uid)

    def _pod_bound(self, change: PodChange, new: PodInfo) -> None:
        old = change.old
        if old is not None and old.is_bound:
            if change.old_node == change.new_node:
                for event in cluster_events.pod_updated(old, new):
                    self._state.notify(event, old, new)
            return
        self._left_the_queue(change, new)
        if old is not None and change.old_node and change.old_node != change.new_node:
            self._state.notify(cluster_events.pod_deleted(), placed(old, change.old_node), None)
        self._state.notify(cluster_events.pod_added(Resource.ASSIGNED_POD), None, new)

    def _left_the_queue(self, change: PodChange, new: PodInfo) -> None:
        """An unbound pod is shown bound: our assumption is confirmed, or somebody else was faster."""
        uid = new.uid
        self.foreign.discard(uid)
        self._cycles.abandon(uid)
        if uid in self._bindings:
            self._bindings.confirmed(uid, change.new_node)
        elif change.old is not None and not change.was_assumed:
            self._state.tell(uid, f"bound to {change.new_node} by someone else")
        self._preemptions.forget(uid)
        self._state.queue.delete(uid)
        self._failures.writer.forget(uid)

    def _pod_waits(self, change: PodChange, new: PodInfo) -> None:
        state, old = self._state, change.old
        if new.pod.spec.scheduler_name not in state.profiles:
            self.foreign.add(new.uid)
            return
        if old is None:
            state.tell(new.uid, f"pod {new.key} appeared")
            self._announce(new)
        self._take_over_nomination(old, new)
        if not state.cluster.is_assumed(new.uid) and new.uid not in self._bindings:
            state.queue.update(new, state.now)

    def _announce(self, new: PodInfo) -> None:
        """Plugins that wait for pods of a group hear of unbound ones too."""
        self._state.notify(cluster_events.pod_added(Resource.UNSCHEDULABLE_POD), None, new)

    def _take_over_nomination(self, old: PodInfo | None, new: PodInfo) -> None:
        """A change of the status is honoured; where it stays the same, ours in memory is newer."""
        if self._state.cluster.is_assumed(new.uid):
            return
        nominations = self._state.cluster.nominations
        before = old.pod.status.nominated_node_name if old is not None else ""
        after = new.pod.status.nominated_node_name
        ours = nominations.node_of(new.uid)
        node = after if before != after else ours
        if node or ours:
            self._state.nominate(new, node)

    # -- other objects ---------------------------------------------------------------------------

    def _node_changed(self, change: NodeChange) -> None:
        old, new = change.old, change.new
        if old is None:
            self._state.notify(cluster_events.node_added(), None, new)
        elif new is None:
            self._give_up_nominations(old.metadata.name)
            self._state.notify(cluster_events.node_deleted(), old, None)
            self._bindings.object_waits.object_changed(NODES, old.metadata.name)
        else:
            for event in cluster_events.node_updated(old, new):
                self._state.notify(event, old, new)

    def _give_up_nominations(self, node: str) -> None:
        """The node is gone, and with it the room that was kept there."""
        cluster = self._state.cluster
        for pod in cluster.nominations.on_node(node):
            cluster.nominations.remove(pod.uid)
            newest = cluster.pod(pod.uid)
            if newest is not None and newest.uid not in self.foreign:
                self._failures.writer.give_up_nomination(newest)

    def _object_changed(self, resource: str, old: KubeObject | None, new: KubeObject | None) -> None:
        event = cluster_events.object_event(resource, old, new)
        if event is not None:
            self._state.notify(event, old, new)
        changed = new or old
        if changed is not None:
            self._bindings.object_waits.object_changed(resource, changed.key)
