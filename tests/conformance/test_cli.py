"""The program as people use it: real processes, real HTTP, Ctrl-C, kill -9, wrong input."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clikit import Running, is_alive, pilotage
from clusterkit import eventually

pytestmark = [pytest.mark.network, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"
WHY = (
    "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. "
    "no new claims to deallocate, preemption: 0/3 nodes are available: "
    "3 Preemption is not helpful for scheduling."
)
SECOND = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: second}]
"""
SHOWN = """
apiVersion: v1
kind: Pod
metadata: {name: shown, labels: {app: shown}}
spec: {containers: [{name: c, image: registry.example/c:1}]}
"""
BESIDE = """
apiVersion: v1
kind: Pod
metadata: {name: beside}
spec: {schedulerName: second, containers: [{name: c, image: registry.example/c:1}]}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[Running]:
    """One cluster for the file; each test has objects of its own in it."""
    running = Running(home, "up", "--nodes", "3")
    try:
        running.wait_for("ready\n")
        yield running
    finally:
        running.kill()


def ok(home: Path, *arguments: str | Path, stdin: str = "") -> str:
    done = pilotage(home, *arguments, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def get_pods(home: Path) -> dict[str, dict[str, Any]]:
    pods = json.loads(ok(home, "get", "pods", "-o", "json"))["items"]
    return {pod["metadata"]["name"]: pod for pod in pods}


def phases(home: Path) -> dict[str, str]:
    return {name: pod["status"]["phase"] for name, pod in get_pods(home).items()}


def reason(pod: dict[str, Any]) -> str:
    conditions = pod["status"].get("conditions") or ()
    return "".join(c.get("message", "") for c in conditions if c["type"] == "PodScheduled")


def complaint(home: Path, *arguments: str | Path, code: int = 1) -> str:
    """The one line on stderr of a command that must fail."""
    done = pilotage(home, *arguments)
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_the_life_of_a_cluster(tmp_path: Path) -> None:
    """It says how to use it, its nodes are Ready when it says `ready`, Ctrl-C ends all of it."""
    cluster = Running(tmp_path, "up", "--nodes", "3")
    try:
        lines = cluster.wait_for("ready\n").splitlines()
        kubeconfig = tmp_path / "state" / "pilotage" / "kubeconfig"
        assert lines[0].startswith("API server   https://127.0.0.1:")
        assert f"  export KUBECONFIG={kubeconfig}" in lines
        assert any(line.endswith("/pilotage get nodes") for line in lines)
        assert lines[-1] == "ready"
        assert kubeconfig.stat().st_mode & 0o077 == 0
        nodes = json.loads(ok(tmp_path, "get", "nodes", "-o", "json"))["items"]
        ready = [c["status"] for node in nodes for c in node["status"]["conditions"] if c["type"] == "Ready"]
        assert ready == ["True"] * 3
        [server] = cluster.children()
        cluster.interrupt()
        assert cluster.end() == (0, "stopped\n")
        assert not is_alive(server)
        assert complaint(tmp_path, "get", "pods") == (
            "error: the cluster of the last 'pilotage up' has ended: start one with 'pilotage up'\n"
        )
    finally:
        cluster.kill()


@pytest.mark.usefixtures("cluster")
def test_the_first_steps(home: Path) -> None:
    """One pod runs, one waits and says why; the fix brings it to a node."""
    assert ok(home, "apply", "-f", EXAMPLES / "first-steps.yaml") == "pod/web created\npod/search created\n"
    eventually(lambda: phases(home)["web"] == "Running", "web runs")
    eventually(lambda: reason(get_pods(home)["search"]) == WHY, "search says why it waits")
    assert (phases(home)["web"], phases(home)["search"]) == ("Running", "Pending")
    eventually(lambda: WHY in ok(home, "get", "events"), "the event says it too")
    assert ok(home, "apply", "-f", EXAMPLES / "first-steps-fixed.yaml") == "node/node-0 configured\n"
    eventually(lambda: phases(home)["search"] == "Running", "search runs")
    assert get_pods(home)["search"]["spec"]["nodeName"] == "node-0"


@pytest.mark.usefixtures("cluster")
def test_get_in_all_forms(home: Path) -> None:
    ok(home, "apply", "-f", "-", stdin=SHOWN)
    eventually(lambda: phases(home)["shown"] == "Running", "shown runs")
    wide = ok(home, "get", "pods", "-A", "-o", "wide", "-l", "app=shown").splitlines()
    assert wide[0].split()[:3] == ["NAMESPACE", "NAME", "READY"]
    assert wide[1].split()[:4] == ["default", "shown", "1/1", "Running"]
    names = ok(home, "get", "pods,nodes", "-o", "name").split()
    assert {"pod/shown", "node/node-0", "node/node-1", "node/node-2"} <= set(names)
    assert "name: shown\n" in ok(home, "get", "pod/shown", "-o", "yaml")
    nothing = pilotage(home, "get", "pods", "-n", "kube-system")
    assert (nothing.returncode, nothing.stderr) == (0, "No resources found in kube-system namespace.\n")
    some = pilotage(home, "get", "pod", "shown", "nosuch")
    assert (some.returncode, some.stderr) == (1, 'Error from server (NotFound): pods "nosuch" not found\n')
    assert "shown " in some.stdout


@pytest.mark.usefixtures("cluster")
def test_watching(home: Path) -> None:
    watching = Running(home, "get", "ns", "-w")
    try:
        watching.wait_for("kube-system")
        manifest = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seen"}}'
        ok(home, "apply", "-f", "-", stdin=manifest)
        watching.wait_for("seen ")
        watching.interrupt()
        assert watching.end() == (130, "")
    finally:
        watching.kill()


@pytest.mark.usefixtures("cluster")
def test_apply_reports_each_object(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mixed.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Foo\nmetadata: {name: a}\n---\n"
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {contaners: []}\n"
    )
    done = pilotage(home, "apply", "-f", file)
    assert (done.returncode, done.stdout) == (1, "configmap/good created\n")
    foo, bad = done.stderr.splitlines()
    assert foo == f'error: {file}: no matches for kind "Foo" in version "v1"'
    assert 'unknown field "spec.contaners"' in bad
    assert ok(
        home, "apply", "-f", "-", stdin="{apiVersion: v1, kind: ConfigMap, metadata: {name: good}}"
    ) == ("configmap/good unchanged\n")
    assert ok(home, "delete", "cm", "good") == 'configmap "good" deleted\n'
    assert pilotage(home, "delete", "cm", "good").returncode == 1
    assert ok(home, "delete", "cm", "good", "--ignore-not-found") == ""


@pytest.mark.usefixtures("cluster")
def test_a_second_scheduler_beside_it(home: Path, tmp_path: Path) -> None:
    """`run` against the same server under a name of its own."""
    config = tmp_path / "second.yaml"
    config.write_text(SECOND)
    kubeconfig = home / "state" / "pilotage" / "kubeconfig"
    second = Running(home, "run", "--kubeconfig", kubeconfig, "--config", config, "--health-port", "0")
    try:
        second.wait_for("ready\n")
        ok(home, "apply", "-f", "-", stdin=BESIDE)
        eventually(lambda: phases(home)["beside"] == "Running", "the second scheduler's pod runs")
        second.interrupt()
        code, err = second.end()
        assert code == 0
        assert "Traceback" not in err
    finally:
        second.kill()


def test_ctrl_c_while_it_starts(tmp_path: Path) -> None:
    starting = Running(tmp_path, "up")
    try:
        children: list[int] = []

        def has_child() -> bool:
            children[:] = starting.children()
            return bool(children)

        eventually(has_child, "the server child is there")
        starting.interrupt()
        assert starting.end() == (130, "stopped\n")
        assert not is_alive(children[0])
    finally:
        starting.kill()


def test_kill_9_leaves_nothing(tmp_path: Path) -> None:
    killed = Running(tmp_path, "up", "--nodes", "1")
    try:
        killed.wait_for("ready\n")
        [server] = killed.children()
        os.kill(killed.process.pid, signal.SIGKILL)
        killed.end()
        eventually(lambda: not is_alive(server), "the server child is gone")
    finally:
        killed.kill()


def test_a_busy_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        line = complaint(tmp_path, "up", "--port", str(port))
    assert line == f"error: port {port} is in use: choose another one, or 0 to have a free one picked\n"


def test_a_kubeconfig_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    mine = tmp_path / "config"
    mine.write_text("precious")
    assert "was not written by pilotage" in complaint(tmp_path, "up", "--write-kubeconfig", mine)
    assert mine.read_text() == "precious"


def test_wrong_files_are_one_line(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(SECOND + "paralelism: 7\n")
    assert complaint(tmp_path, "up", "--config", config) == f"error: {config}: paralelism: 7: unknown field\n"
    broken = tmp_path / "broken"
    broken.write_text("}{")
    for command in ("get", "run"):
        arguments = ["pods"] if command == "get" else []
        line = complaint(tmp_path, command, *arguments, "--kubeconfig", broken)
        assert line.startswith(f"error: kubeconfig {broken}: line 1, column 1: not valid YAML")
    assert complaint(tmp_path, "get", "pods").startswith("error: no kubeconfig: give --kubeconfig FILE")


def test_the_demo_in_numbers(tmp_path: Path) -> None:
    done = pilotage(tmp_path, "demo", "-o", "json")
    assert done.returncode == 0
    shown = json.loads(done.stdout)
    waiting = [pod for group in shown["pending"] for pod in group["pods"]]
    assert (shown["nodes"], len(shown["pending"]), len(waiting)) == (50, 4, 6)
    assert shown["bound"] == shown["running"] == sum(shown["zones"].values()) > 200
    assert all(group["reason"].startswith("0/50 nodes are available: ") for group in shown["pending"])
    assert len({group["reason"] for group in shown["pending"]}) == 4
    assert 0 < shown["bind_p50"] <= shown["bind_p99"] <= shown["elapsed"]
    assert shown["calls"]["failed"] == 0
    assert shown["calls"]["sent"] >= shown["bound"]
    shares = [share for pool in shown["utilisation"] for share in pool["cpu"]]
    assert len(shares) == 50
    assert all(0 <= share <= 1 for share in shares)
    assert 0.4 < sum(shares) / len(shares) < 0.8


def test_the_story_of_a_resize(tmp_path: Path) -> None:
    done = pilotage(tmp_path, "demo", "resize", "-o", "json")
    assert done.returncode == 0, done.stderr
    moments = json.loads(done.stdout)
    told = [f"{moment['who']} {moment['what']}" for moment in moments]
    expected = [
        "you web shall have 2 CPU instead of 1",
        "kubelet Deferred: Node didn't have enough resource: cpu",
        "batch-b is asked to end",
        "batch-b is gone",
        "kubelet allocates 2 CPU to web",
        "web runs with 2 CPU",
    ]
    places = [next(i for i, line in enumerate(told) if line.startswith(start)) for start in expected]
    assert places == sorted(places), told
    assert not any(line.startswith("batch-a") for line in told), "one victim"
    assert any("ResizePreempting (web)" in line for line in told)
    assert [moment["seconds"] for moment in moments] == sorted(moment["seconds"] for moment in moments)
