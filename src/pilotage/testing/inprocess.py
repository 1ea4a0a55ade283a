"""The embedded API server as a test holds it: transports for its clients, and its store to look into."""

from __future__ import annotations

from typing import Any

from pilotage.api.kinds import Kind
from pilotage.localcluster.inprocess import InProcessTransport
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.server import ApiServer, make_store
from pilotage.localcluster.store import Store
from pilotage.testing.faults import Faults
from pilotage.testing.faultytransport import FaultyTransport
from pilotage.testing.virtualtime import VirtualClock

Tree = dict[str, Any]


class Server:
    def __init__(self, clock: VirtualClock, seed: int, history: int) -> None:
        """`history`: how many changes watches can still resume from."""
        self.api = ApiServer(make_store(history=history), Ids(f"harness/{seed}".encode()), clock.time())
        self._transport = InProcessTransport(self.api, clock)

    @property
    def store(self) -> Store:
        return self.api.store

    def transport(self, faults: Faults, client: str) -> FaultyTransport:
        """A way in for one client, named in the log and to be hit by `faults`."""
        return FaultyTransport(InProcessTransport.over(self._transport.host), faults, client)

    def read(self, kind: Kind, name: str, namespace: str = "") -> Tree | None:
        """One object, past the API."""
        record = self.store.get(kind.storage_resource, namespace if kind.namespaced else "", name)
        return record.tree() if record is not None else None

    def read_all(self, kind: Kind, namespace: str = "") -> list[Tree]:
        return [record.tree() for record in self.store.list(kind.storage_resource, namespace).records]

    def write_raw(self, kind: Kind, tree: Tree) -> None:
        """Puts an object into the store past defaults and validation: what a bad server would show.

        Replaces what is there. The caller gives the metadata, uid included.
        """
        meta = tree["metadata"]
        known = self.store.get(kind.storage_resource, meta.get("namespace", ""), meta["name"])
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **tree}
        if known is None:
            self.store.create(kind.storage_resource, body)
        else:
            self.store.update(kind.storage_resource, body)

    def compact(self) -> None:
        """Forget all history: older watches and continue tokens are answered with 410."""
        self.store.compact()
