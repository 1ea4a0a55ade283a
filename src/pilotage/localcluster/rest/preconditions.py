"""What a write demands of the object that it finds: its UID and its version."""

from __future__ import annotations

from pilotage.api.kinds import Kind
from pilotage.localcluster.rest.errors import conflict, precondition_failed
from pilotage.localcluster.store import Record


def check_uid(kind: Kind, record: Record, uid: object) -> None:
    """Raises RestError 409 when a UID is given and is another one."""
    if isinstance(uid, str) and uid and uid != record.uid:
        raise precondition_failed(kind, record.name, "UID", uid, record.uid)


def check_version(kind: Kind, record: Record, version: object) -> None:
    """The optimistic lock. Raises RestError 409 when a version is given and is another one."""
    if isinstance(version, str) and version not in ("", "0", str(record.version)):
        raise conflict(kind, record.name)


def check_version_precondition(kind: Kind, record: Record, version: object) -> None:
    """As `check_version`, in the words of a deletion's preconditions."""
    if isinstance(version, str) and version and version != str(record.version):
        raise precondition_failed(kind, record.name, "ResourceVersion", version, str(record.version))
