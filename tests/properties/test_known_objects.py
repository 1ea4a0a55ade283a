"""Whatever is missed, repeated or relisted: the consumer's picture is the server's, each change told once."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from pilotage.client.known import Change, ChangeType, Identity, KnownObjects, Seen

NAMES = ("a", "b", "c")


@dataclass
class Server:
    """A history of writes; objects by name with UID and version."""

    version: int = 100
    objects: dict[str, Identity] = field(default_factory=dict)
    history: list[tuple[int, str, Identity]] = field(default_factory=list)

    def write(self, name: str, action: str) -> None:
        old = self.objects.get(name)
        self.version += 1
        uid = old.uid if old else f"{name}-{self.version}"
        new = Identity("ns", name, uid, str(self.version))
        if action == "delete":
            if old is None:
                return
            del self.objects[name]
            self.history.append((self.version, "DELETED", new))
        else:
            self.objects[name] = new
            self.history.append((self.version, "MODIFIED" if old else "ADDED", new))


@dataclass
class Consumer:
    """Keeps what it was told, and refuses what no consumer should be told."""

    picture: dict[str, Identity] = field(default_factory=dict)

    def take(self, changes: list[Change]) -> None:
        for change in changes:
            identity = change.identity
            known = self.picture.get(identity.name)
            if change.type is ChangeType.DELETED:
                assert known is not None, "deleted without having been told"
                assert known.uid == identity.uid
                del self.picture[identity.name]
                continue
            assert known is None or known.uid == identity.uid, "another UID without a delete before it"
            assert known != identity, "told twice"
            self.picture[identity.name] = identity


WRITES = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(["put", "put", "delete"])), max_size=6)
STEPS = st.lists(st.tuples(WRITES, st.sampled_from(["watch", "replay", "list", "lose"])), max_size=12)


def seen(identity: Identity) -> Seen:
    return Seen(identity, object=identity)


@given(STEPS)
def test_the_picture_converges_and_nothing_is_told_twice(
    steps: list[tuple[list[tuple[str, str]], str]],
) -> None:
    server, consumer = Server(), Consumer()
    known = KnownObjects(lambda identity: identity)
    told_up_to = server.version
    for writes, way in [*steps, ([], "list")]:
        before = told_up_to
        for name, action in writes:
            server.write(name, action)
        if way == "lose":
            continue
        if way == "list":
            consumer.take(known.replaced(seen(one) for one in server.objects.values()))
            told_up_to = server.version
            continue
        # A watch from where we were; a replay repeats what it told.
        for _ in range(2 if way == "replay" else 1):
            for version, kind, identity in server.history:
                if version > before:
                    take = known.deleted if kind == "DELETED" else known.upserted
                    consumer.take(take(seen(identity)))
            told_up_to = server.version
            if way == "replay" and any(kind == "DELETED" for v, kind, _ in server.history if v > before):
                break  # a replay past a delete may bring it back for a moment; it ends with the delete
        assert consumer.picture == server.objects
    assert consumer.picture == server.objects
    assert len(known) == len(server.objects)
