"""The embedded cluster's memory: objects, their versions and what changed. Pure."""

from pilotage.localcluster.store.changes import ChangeLog, Cursor, ExpiredError
from pilotage.localcluster.store.records import Change, ChangeType, Record, Tree, decode_tree, encode_tree
from pilotage.localcluster.store.store import (
    AlreadyExistsError,
    ConflictError,
    FutureVersionError,
    NotFoundError,
    Snapshot,
    Store,
    StoreError,
)

__all__ = [
    "AlreadyExistsError",
    "Change",
    "ChangeLog",
    "ChangeType",
    "ConflictError",
    "Cursor",
    "ExpiredError",
    "FutureVersionError",
    "NotFoundError",
    "Record",
    "Snapshot",
    "Store",
    "StoreError",
    "Tree",
    "decode_tree",
    "encode_tree",
]
