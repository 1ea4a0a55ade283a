"""`pilotage bench storm` in real time: three processes, real HTTP, a cluster that is left as it was found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clikit import Running, is_alive, pilotage
from clusterkit import eventually

pytestmark = [pytest.mark.network, pytest.mark.slow]

SMALL = ("--bad", "60", "--good", "5", "--rate", "10", "--delay", "0.5", "-o", "json")
QUIET = ("default", "kube-node-lease", "kube-public", "kube-system")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[Path]:
    """A cluster with two nodes of its own; its kubeconfig."""
    kubeconfig = home / "kubeconfig"
    running = Running(home, "up", "--nodes", "2", "--write-kubeconfig", kubeconfig)
    try:
        running.wait_for("ready\n")
        yield kubeconfig
    finally:
        running.kill()


def names(home: Path, cluster: Path, what: str) -> list[str]:
    done = pilotage(home, "get", what, "-A", "-o", "json", "--kubeconfig", cluster)
    return [item["metadata"]["name"] for item in json.loads(done.stdout)["items"]]


def check_left_as_found(home: Path, cluster: Path) -> None:
    assert names(home, cluster, "namespaces") == list(QUIET)
    assert names(home, cluster, "nodes") == ["node-0", "node-1"]
    assert names(home, cluster, "pods") == []


def measured(home: Path, *options: str | Path) -> dict[str, Any]:
    done = pilotage(home, "bench", "storm", *SMALL, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_on_an_embedded_server(tmp_path: Path) -> None:
    report = measured(tmp_path, "--nodes", "2")
    assert report["place"] == "embedded server, real time"
    assert report["figures"]["good_bound"] == report["sent"]["requests"]["POST pods/binding"] == 5
    assert report["sent"]["requests"]["PATCH pods/status"] == 60
    assert 0 < report["figures"]["bind_p50"] < 1
    assert report["sent"]["refused"] == {}


def test_refused_and_slow_over_http(tmp_path: Path) -> None:
    report = measured(tmp_path, "--reject", "0.3", "--latency", "0.05")
    figures = report["figures"]
    assert figures["bind_p50"] > 0.05
    assert report["sent"]["too_many_requests"] > 20
    assert report["sent"]["refused"]["PATCH pods/status 429"] > 0
    assert (figures["binds_lost"], report["sent"]["binds_sent_twice"]) == (0, 0)


def test_on_a_cluster_with_its_own_nodes(home: Path, cluster: Path) -> None:
    report = measured(home, "--kubeconfig", cluster)
    assert report["place"] == "the cluster of the kubeconfig, real time"
    assert report["figures"]["good_bound"] == 5
    check_left_as_found(home, cluster)


def test_on_a_cluster_with_nodes_for_the_run(home: Path, cluster: Path) -> None:
    report = measured(home, "--kubeconfig", cluster, "--create-nodes", "--nodes", "3")
    assert report["figures"]["conditions_missing"] == 0
    check_left_as_found(home, cluster)


def test_the_scheduler_that_runs_there(home: Path, cluster: Path) -> None:
    report = measured(home, "--kubeconfig", cluster, "--scheduler-name", "default-scheduler")
    assert (report["scheduler"], report["sent"]) == ("default-scheduler", None)
    assert report["figures"]["good_bound"] == 5
    assert [verdict["aim"]["figure"] for verdict in report["verdicts"]] == [
        "bind_p99",
        "conditions_missing",
        "binds_lost",
    ]
    check_left_as_found(home, cluster)


def test_ctrl_c_leaves_nothing(home: Path, cluster: Path) -> None:
    running = Running(home, "bench", "storm", "--kubeconfig", cluster, "--create-nodes", "--bad", "50")
    try:
        eventually(lambda: len(names(home, cluster, "pods")) >= 50, "the bad pods are there", 30)
        children = running.children()
        assert len(children) == 1
        running.interrupt()
        code, err = running.end()
    finally:
        running.kill()
    assert (code, err.splitlines()[-1]) == (130, "interrupted")
    assert not any(is_alive(child) for child in children)
    check_left_as_found(home, cluster)


def test_kill_9_takes_server_and_scheduler_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    running = Running(tmp_path, "bench", "storm", "--bad", "50")
    try:
        eventually(lambda: len(running.children()) == 2, "server and scheduler run")
        children = running.children()
        running.process.kill()
        _, err = running.end()
    finally:
        running.kill()
    assert err == ""
    eventually(lambda: not any(is_alive(child) for child in children), "nothing is left")


def test_a_cluster_without_nodes_is_told(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    running = Running(tmp_path, "up", "--nodes", "0", "--write-kubeconfig", kubeconfig)
    try:
        running.wait_for("ready\n")
        done = pilotage(tmp_path, "bench", "storm", "--kubeconfig", kubeconfig)
    finally:
        running.kill()
    assert done.returncode == 1
    assert "this cluster has no nodes: --create-nodes makes some" in done.stderr
