"""The end of a binding that others carry out: what is written for it, and when a pod's claims are bound.

Laws
- A claim counts as bound when the volume controller says so, never because we asked for it.
- What was written and is gone again is somebody's answer: the volume's reservation or the claim's node was
  reset, so provisioning failed there, and waiting on would be in vain. It counts as gone only once our own
  write is known to have been there.
- A pod whose node is gone waits for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pilotage.api.others import PersistentVolumeClaim
from pilotage.framework.calls import Call, ObjectKey
from pilotage.framework.status import SUCCESS, Status, error
from pilotage.framework.volume_calls import BindVolume, SelectNode
from pilotage.state.cluster import ClusterState
from pilotage.state.volume_values import SELECTED_NODE, Volume, annotation, is_bound, is_for
from pilotage.state.volumes import CLAIMS, VOLUMES


class _FailedError(Exception):
    """Binding cannot succeed any more; the text says why."""


@dataclass(slots=True)
class Reserved:
    """What a pod's Reserve promised on its node, and so what PreBind has to bring about."""

    node: str
    given: list[tuple[Volume, PersistentVolumeClaim]]
    sent: list[PersistentVolumeClaim]
    # Volumes and claims (keys) whose write of ours was seen in the cluster.
    _seen: set[str] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        return not self.given and not self.sent

    def calls(self) -> tuple[Call, ...]:
        """The writes that are still to be made."""
        return (*self._volume_calls(), *self._claim_calls())

    def _volume_calls(self) -> Iterator[Call]:
        for volume, claim in self.given:
            reference = volume.view.spec.claim_ref
            if reference is None or not reference.uid or not is_for(volume.view, claim):
                key = ObjectKey(VOLUMES, "", volume.name, volume.view.metadata.uid)
                yield BindVolume(key, _key(claim))

    def _claim_calls(self) -> Iterator[Call]:
        for claim in self.sent:
            known = annotation(claim, SELECTED_NODE)
            if known != self.node:
                yield SelectNode(_key(claim), self.node, known)

    def watched(self, cluster: ClusterState) -> list[tuple[str, str]]:
        """The objects whose change may end the wait."""
        found = [("nodes", self.node)]
        for volume, claim in self.given:
            found += [(VOLUMES, volume.name), (CLAIMS, claim.key)]
        for claim in self.sent:
            found.append((CLAIMS, claim.key))
            newest = cluster.volumes.claim(claim.metadata.namespace, claim.metadata.name)
            if newest is not None and newest.spec.volume_name:
                found.append((VOLUMES, newest.spec.volume_name))
        return found

    def check(self, cluster: ClusterState, is_written: bool) -> Status | None:
        """Success when all claims are bound, an error when that will not come, None to go on waiting."""
        try:
            given = [self._is_given(cluster, volume, claim, is_written) for volume, claim in self.given]
            sent = [self._is_provisioned(cluster, claim, is_written) for claim in self.sent]
            if cluster.nodes.row(self.node) is None:
                raise _FailedError(f'node "{self.node}" is gone')
        except _FailedError as problem:
            return error(f"binding volumes: {problem}")
        return SUCCESS if all((*given, *sent)) else None

    def unbound(self, cluster: ClusterState) -> list[str]:
        """Names of the claims that are not bound yet."""
        claims = [*(claim for _, claim in self.given), *self.sent]
        names = [(claim.metadata.namespace, claim.metadata.name) for claim in claims]
        newest = [(name, cluster.volumes.claim(namespace, name)) for namespace, name in names]
        return [name for name, claim in newest if claim is None or not is_bound(claim)]

    def _is_given(
        self, cluster: ClusterState, volume: Volume, claim: PersistentVolumeClaim, is_written: bool
    ) -> bool:
        newest = _newest(cluster, claim)
        offered = cluster.volumes.volume(volume.name)
        if offered is None:
            raise _FailedError(f'persistentvolume "{volume.name}" is gone')
        self._check_reach(cluster, offered)
        reference = offered.view.spec.claim_ref
        if reference is not None and reference.uid and is_for(offered.view, claim):
            self._seen.add(volume.name)
        elif is_written or volume.name in self._seen:
            name = claim.metadata.name
            raise _FailedError(f'persistentvolume "{volume.name}" is no longer reserved for PVC "{name}"')
        return is_bound(newest)

    def _is_provisioned(self, cluster: ClusterState, claim: PersistentVolumeClaim, is_written: bool) -> bool:
        newest = _newest(cluster, claim)
        if newest.spec.volume_name:
            made = cluster.volumes.volume(newest.spec.volume_name)
            if made is None:
                return False  # it comes with another watch
            self._check_reach(cluster, made)
            return is_bound(newest)
        name = claim.metadata.name
        if annotation(newest, SELECTED_NODE) == self.node:
            self._seen.add(claim.key)
        elif is_written or claim.key in self._seen:
            raise _FailedError(f'provisioning failed for PVC "{name}": its selected node was reset')
        return False

    def _check_reach(self, cluster: ClusterState, volume: Volume) -> None:
        row = cluster.nodes.row(self.node)
        if row is None or volume.affinity is None:
            return
        if not volume.affinity.matches(cluster.nodes.node(row).metadata.labels, self.node):
            affinity = "by its node affinity"
            text = f'persistentvolume "{volume.name}" cannot be reached from node "{self.node}" {affinity}'
            raise _FailedError(text)


def _newest(cluster: ClusterState, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    meta = claim.metadata
    newest = cluster.volumes.claim(meta.namespace, meta.name)
    if newest is None or newest.metadata.uid != meta.uid or newest.metadata.deletion_timestamp is not None:
        raise _FailedError(f'persistentvolumeclaim "{meta.name}" is gone or being deleted')
    return newest


def _key(claim: PersistentVolumeClaim) -> ObjectKey:
    meta = claim.metadata
    return ObjectKey(CLAIMS, meta.namespace, meta.name, meta.uid)
