"""The store alone: versions, conflicts, no-ops, snapshots, cursors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pilotage.localcluster.store import (
    AlreadyExistsError,
    ChangeType,
    ConflictError,
    ExpiredError,
    FutureVersionError,
    NotFoundError,
    Store,
)


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store({"pods": lambda tree: {"phase": tree.get("phase", "")}}, history=4)
    yield store
    store.check_invariants()


def tree(name: str, namespace: str = "a", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}, **more}


def test_versions_grow_over_all_resources(store: Store) -> None:
    versions = [store.create(r, tree("x")).version for r in ("pods", "nodes", "pods.other")]
    assert versions == sorted(set(versions))
    assert store.version == versions[-1]
    assert store.get("nodes", "a", "x").tree()["metadata"]["resourceVersion"] == str(versions[1])


def test_create_twice_is_refused_and_leaves_no_trace(store: Store) -> None:
    store.create("pods", tree("x"))
    before = store.version
    with pytest.raises(AlreadyExistsError):
        store.create("pods", tree("x"))
    assert store.version == before


def test_update_needs_the_version_it_expects(store: Store) -> None:
    first = store.create("pods", tree("x"))
    second = store.update("pods", tree("x", phase="Running"), expected=first.version)
    assert second.fields == {"phase": "Running"}
    with pytest.raises(ConflictError):
        store.update("pods", tree("x", phase="Failed"), expected=first.version)
    with pytest.raises(NotFoundError):
        store.update("pods", tree("y"))


def test_a_write_that_changes_nothing_takes_no_version(store: Store) -> None:
    record = store.create("pods", tree("x", phase="Running"))
    assert store.update("pods", dict(reversed(tree("x", phase="Running").items()))) is record
    assert store.version == record.version


def test_a_change_of_equal_size_is_a_change(store: Store) -> None:
    record = store.create("pods", tree("x", phase="aaa"))
    assert store.update("pods", tree("x", phase="bbb")).version == record.version + 1


def test_a_dry_run_stores_nothing(store: Store) -> None:
    store.create("pods", tree("y", is_dry_run=True), is_dry_run=True)
    assert store.get("pods", "a", "y") is None
    store.create("pods", tree("x"))
    before = store.version
    assert store.update("pods", tree("x", phase="z"), is_dry_run=True).fields == {"phase": "z"}
    assert store.version == before
    assert store.get("pods", "a", "x").fields == {"phase": ""}


def test_a_deletion_has_a_version_of_its_own(store: Store) -> None:
    store.create("pods", tree("x"))
    gone = store.delete("pods", "a", "x")
    assert gone.version == store.version
    assert gone.tree()["metadata"]["resourceVersion"] == str(gone.version)
    with pytest.raises(NotFoundError):
        store.delete("pods", "a", "x")


def test_lists_come_in_key_order_and_by_namespace(store: Store) -> None:
    for name, namespace in (("b", "n"), ("a", "n"), ("c", "m"), ("a", "n-2")):
        store.create("pods", tree(name, namespace))
    assert [r.key for r in store.list("pods").records] == ["m/c", "n-2/a", "n/a", "n/b"]
    assert [r.name for r in store.list("pods", "n").records] == ["a", "b"]
    assert (store.count("pods"), store.count("pods", "n"), store.count("pods", "none")) == (4, 2, 0)


def test_a_snapshot_shows_an_earlier_moment(store: Store) -> None:
    store.create("pods", tree("stays"))
    store.create("pods", tree("goes"))
    version = store.version
    store.delete("pods", "a", "goes")
    store.create("pods", tree("comes"))
    store.update("pods", tree("stays", phase="new"))
    then = store.list("pods", version=version)
    assert [(r.name, r.fields["phase"]) for r in then.records] == [("goes", ""), ("stays", "")]
    assert then.version == version
    with pytest.raises(FutureVersionError):
        store.list("pods", version=store.version + 1)


def test_a_cursor_reads_each_change_once(store: Store) -> None:
    cursor = store.watch("pods", store.version)
    assert cursor.read(10) == []
    store.create("pods", tree("x"))
    store.create("nodes", tree("n"))
    store.delete("pods", "a", "x")
    assert [change.type for change in cursor.read(1)] == [ChangeType.ADDED]
    assert cursor.has_more
    assert [change.type for change in cursor.read(9)] == [ChangeType.DELETED]
    assert not cursor.has_more


def test_only_waiting_cursors_of_the_resource_are_woken_and_once(store: Store) -> None:
    pods, nodes = store.watch("pods", store.version), store.watch("nodes", store.version)
    store.wait(pods)
    store.wait(nodes)
    store.create("pods", tree("x"))
    store.create("pods", tree("y"))
    assert store.take_woken() == [pods]
    assert store.take_woken() == ()
    store.forget(nodes)
    store.create("nodes", tree("n"))
    assert store.take_woken() == ()


def test_history_is_bounded_and_a_slow_reader_expires(store: Store) -> None:
    start = store.version
    cursor = store.watch("pods", start)
    for index in range(20):
        store.create("pods", tree(f"p{index}"))
    with pytest.raises(ExpiredError):
        cursor.read(10)
    with pytest.raises(ExpiredError):
        store.watch("pods", start)
    assert store.watch("pods", store.version).read(10) == []


def test_compaction_expires_older_versions_only(store: Store) -> None:
    store.create("pods", tree("x"))
    old = store.version
    store.create("pods", tree("y"))
    store.compact()
    with pytest.raises(ExpiredError, match=f"too old resource version: {old}"):
        store.watch("pods", old)
    with pytest.raises(ExpiredError):
        store.list("pods", version=old)
    store.watch("pods", store.version)
