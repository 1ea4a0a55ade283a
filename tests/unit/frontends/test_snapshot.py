"""Snapshots: dumps and manifests read, completed, and loaded into an engine that writes nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from explainkit import NOW, details, explained
from pilotage.frontends.snapshot.dump import read_dump
from pilotage.frontends.snapshot.loading import load
from pilotage.frontends.snapshot.objects import Snapshot, SnapshotError, snapshot_of_trees
from pilotage.plugins import default_registry
from pilotage.runtime.config import default_settings
from pilotage.scheduling.engine import Engine
from pilotage.testing import builders as b


def loaded(snapshot: Snapshot, lifted: tuple[str, ...] = ()) -> Engine:
    registry = default_registry()
    return load(snapshot, default_settings(registry), registry, NOW, lifted)


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "dump"
    file.write_text(text)
    return str(file)


def listed(*items: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump, lambda t: yaml.safe_dump_all(t["items"])])
def test_json_yaml_and_several_documents(tmp_path: Path, write: Any) -> None:
    snapshot = read_dump(written(tmp_path, write(listed(b.node("n1"), b.pod("p"), b.pod("q")))))
    assert sorted(pod.metadata.name for pod in snapshot.pods()) == ["p", "q"]
    assert loaded(snapshot).cluster.nodes.n_nodes == 1


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(b.pod("p"))))
    assert read_dump("-").pod("default", "p") is not None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no objects in it"),
        ("a: [", "not valid YAML: line 1"),
        ('{"apiVersion": "v1"', "not valid YAML"),
        ("just words", "an object was expected"),
        ("apiVersion: v1\nkind: Pod\n", "metadata: missing in Pod"),
    ],
)
def test_faults_name_the_file(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SnapshotError, match=r"dump: ") as caught:
        read_dump(path)
    assert told in str(caught.value)


def test_manifests_are_completed_as_a_server_would() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"priorityClassName": "priority-7", "containers": [{"name": "c", "image": "i"}]},
    }
    found = snapshot_of_trees([b.priority_class(7), pod], "test").pod("default", "p")
    assert found is not None
    assert (found.spec.priority, found.metadata.uid) == (7, "pods/default/p")


def test_an_unknown_priority_class_is_told() -> None:
    pod = b.pod("p", priorityClassName="gone")
    with pytest.raises(SnapshotError, match=r"test: pod default/p: .*gone"):
        snapshot_of_trees([pod], "test")


def test_what_a_server_completed_stays_as_it_is() -> None:
    pod = b.pod("p", priorityClassName="gone")
    pod["metadata"]["uid"] = "u"
    pod["spec"]["priority"] = 9
    found = snapshot_of_trees([pod], "test").pod("default", "p")
    assert found is not None
    assert found.spec.priority == 9


def test_trees_are_not_changed() -> None:
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    before = json.dumps(tree)
    snapshot_of_trees([tree], "test")
    assert json.dumps(tree) == before


def test_other_kinds_are_counted_not_read() -> None:
    trees = [b.node("n1"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]
    assert snapshot_of_trees(trees, "test").ignored == {"ConfigMap": 1}


def test_events_are_counted_in_both_forms() -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    old = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a"},
        "involvedObject": about,
        "count": 3,
    }
    new = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "b"},
        "regarding": about,
        "series": {"count": 5},
    }
    snapshot = snapshot_of_trees([old, new], "test")
    assert snapshot.events_about("default", "p") == 8
    assert snapshot.events_about("default", "q") == 0


def test_an_unreadable_node_gets_no_pods_and_says_why() -> None:
    broken = b.node("n1")
    broken["spec"]["taints"] = "none"
    found = explained([broken, b.node("n2", unschedulable=True), b.pod("p")], "p")
    assert "spec.taints" in details(found)["n1"]
    assert set(details(found)) == {"n1", "n2"}


def test_an_unreadable_pod_is_told_when_it_is_asked_for() -> None:
    broken = b.pod("p")
    broken["spec"]["tolerations"] = "none"
    snapshot = snapshot_of_trees([b.node("n1"), broken, b.pod("q")], "test")
    assert snapshot.pod("default", "q") is not None
    with pytest.raises(SnapshotError, match=r"pod default/p cannot be read: .*tolerations"):
        snapshot.pod("default", "p")


def test_namespaces_that_are_not_in_it_are_made_up() -> None:
    engine = loaded(snapshot_of_trees([b.node("n1"), b.pod("p", namespace="shop")], "test"))
    assert engine.cluster.namespace_labels("shop") == {"kubernetes.io/metadata.name": "shop"}


def test_what_is_missing_is_noted() -> None:
    claim = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    term = {"labelSelector": {}, "namespaceSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    notes = snapshot_of_trees([b.pod("p", volumes=claim, affinity=near)], "test").notes
    assert [note.split(",")[0] for note in notes] == [
        "there are no nodes in it",
        "pods in it use PersistentVolumeClaims",
        "pods in it select namespaces by label",
    ]


def test_lifted_pods_are_taken_off_their_nodes() -> None:
    pod = b.pod("p", cpu=1)
    pod["spec"]["nodeName"] = "n1"
    snapshot = snapshot_of_trees([b.node("n1"), pod], "test")
    there, lifted = loaded(snapshot), loaded(snapshot, ("pods/default/p",))
    assert [len(engine.cluster.nodes.pods(0)) for engine in (there, lifted)] == [1, 0]
    assert lifted.has_work
