"""Any sequence of writes: every moment can be seen again, and a watch retells the way from any of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.localcluster.store import AlreadyExistsError, ChangeType, NotFoundError, Store

NAMES = st.sampled_from(["a", "b", "c"])
WRITES = st.lists(
    st.tuples(st.sampled_from(["create", "update", "delete"]), NAMES, st.integers(0, 3)), max_size=30
)


def write(store: Store, verb: str, name: str, value: int) -> None:
    tree: dict[str, Any] = {"metadata": {"name": name, "namespace": "n"}, "value": value}
    try:
        if verb == "create":
            store.create("things", tree)
        elif verb == "update":
            store.update("things", tree)
        else:
            store.delete("things", "n", name)
    except (AlreadyExistsError, NotFoundError):
        pass


def seen(store: Store, version: int | None = None) -> dict[str, int]:
    return {r.name: r.tree()["value"] for r in store.list("things", version=version).records}


@settings(max_examples=150, deadline=None)
@given(WRITES)
def test_every_version_can_be_seen_again(writes: list[tuple[str, str, int]]) -> None:
    store = Store()
    moments = {store.version: seen(store)}
    for verb, name, value in writes:
        before, version = seen(store), store.version
        write(store, verb, name, value)
        assert (seen(store) != before) == (store.version != version)
        moments[store.version] = seen(store)
    for version, state in moments.items():
        assert seen(store, version) == state
    store.check_invariants()


@settings(max_examples=150, deadline=None)
@given(WRITES, st.integers(0, 30), st.integers(1, 4))
def test_a_watch_leads_from_any_moment_to_now(writes: list[tuple[str, str, int]], at: int, step: int) -> None:
    store = Store()
    for verb, name, value in writes[:at]:
        write(store, verb, name, value)
    state, cursor = seen(store), store.watch("things", store.version)
    for verb, name, value in writes[at:]:
        write(store, verb, name, value)
    last = 0
    while changes := cursor.read(step):
        for change in changes:
            assert change.version > last
            last = change.version
            assert (change.new.name in state) == (change.type is not ChangeType.ADDED)
            if change.type is ChangeType.DELETED:
                del state[change.new.name]
            else:
                state[change.new.name] = change.new.tree()["value"]
    assert state == seen(store)
