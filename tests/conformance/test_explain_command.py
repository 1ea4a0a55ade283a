"""`pilotage explain` and `pilotage diff` as people use them: on a running cluster, on what kubectl dumped."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clikit import Running, pilotage
from clusterkit import eventually
from pilotage.testing import builders as b

pytestmark = [pytest.mark.network, pytest.mark.slow]

SPOT = {"key": "spot", "value": "a", "effect": "NoSchedule"}
DUMP = Path(__file__).parent / "data" / "kubectl-g1.yaml"
DEFAULTS = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NO_TAINTS = f"""{DEFAULTS}
profiles:
- plugins: {{multiPoint: {{disabled: [{{name: TaintToleration}}]}}}}
"""


class Cluster(NamedTuple):
    home: Path
    health: str


def g1() -> list[dict[str, Any]]:
    """Field case G1, on nodes without kubelets: 3 tainted, 2 with half a CPU free, 1 with the wrong label."""
    ssd = {"disk": "ssd"}
    nodes = [b.node(f"n{i}", labels=ssd, taints=[SPOT], kubelet=False) for i in (1, 2, 3)]
    nodes += [b.node(f"n{i}", labels=ssd, kubelet=False) for i in (4, 5)]
    nodes += [b.node("n6", labels={"disk": "hdd"}, kubelet=False)]
    fillers = [b.pod(f"fill-{i}", cpu="3500m") for i in (4, 5)]
    for filler, node in zip(fillers, ("n4", "n5"), strict=True):
        filler["spec"]["nodeName"] = node
    return [*nodes, *fillers, b.pod("web", cpu=1, node_selector=ssd)]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """G1's cluster with a scheduler that has decided."""
    home, port = tmp_path_factory.mktemp("home"), free_port()
    running = Running(home, "up", "--nodes", "0", "--health-port", str(port))
    try:
        running.wait_for("ready\n")
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": g1()})
        done = pilotage(home, "apply", "-f", "-", stdin=manifest)
        assert done.returncode == 0, done.stderr
        eventually(lambda: "Insufficient" in pilotage(home, "get", "events").stdout, "the pod was decided")
        yield Cluster(home, f"http://127.0.0.1:{port}")
    finally:
        running.kill()


def explained(home: Path, *arguments: str | Path, code: int = 3) -> dict[str, Any]:
    done = pilotage(home, "explain", "pod", *arguments, "-o", "json")
    assert (done.returncode, done.stderr) == (code, "")
    return json.loads(done.stdout)


def check_g1(found: dict[str, Any]) -> None:
    assert found["verdict"] == "unschedulable"
    plugins = {one["node"]: one["plugin"] for one in found["nodes"]["list"]}
    assert plugins == {
        **dict.fromkeys(("n1", "n2", "n3"), "TaintToleration"),
        **dict.fromkeys(("n4", "n5"), "NodeResourcesFit"),
        "n6": "NodeAffinity",
    }
    assert {one["node"]: one["preemptionMayHelp"] for one in found["nodes"]["list"]}["n4"] is True
    assert found["nodes"]["list"][3]["detail"] == "needs 1000m cpu, 500m free of 4000m"
    changes = {one["changes"][0]["text"]: len(one["nodes"]) for one in found["whatIf"]}
    assert changes == {
        "but for taint spot=a:NoSchedule": 3,
        "with 500m less cpu (500m instead of 1000m)": 2,
        "but for nodeSelector disk=ssd": 1,
    }


def test_g1_on_a_running_cluster_with_its_queue(cluster: Cluster) -> None:
    found = explained(cluster.home, "web", "--scheduler", cluster.health)
    check_g1(found)
    assert found["pod"]["condition"]["message"] == found["message"]
    assert found["pod"]["events"] >= 1
    queue = found["queue"]
    assert (queue["queue"], queue["attempts"]) == ("unschedulable", 1)
    assert queue["waitsOn"] == ["NodeAffinity", "NodeResourcesFit", "TaintToleration"]
    assert queue["nextRetry"]
    assert {waker["plugin"] for waker in queue["wokenBy"]} == set(queue["waitsOn"])
    assert queue["story"]


def test_explaining_writes_nothing(cluster: Cluster) -> None:
    def versions() -> list[str]:
        listed = json.loads(pilotage(cluster.home, "get", "pods,nodes", "-o", "json").stdout)["items"]
        return [item["metadata"]["resourceVersion"] for item in listed]

    before = versions()
    assert pilotage(cluster.home, "explain", "pod", "web").returncode == 3
    assert pilotage(cluster.home, "explain", "pod/fill-4").returncode == 0
    assert versions() == before


def test_for_people(cluster: Cluster) -> None:
    shown = pilotage(cluster.home, "explain", "pod", "web", COLUMNS="100").stdout
    assert shown.startswith("Pod default/web: Pending\n")
    assert "Now as before no node of 6 can take it." in shown
    assert "3 nodes would do but for taint spot=a:NoSchedule: n1, n2, n3" in shown
    assert max(map(len, shown.splitlines())) <= 100
    assert "\x1b" not in shown


def test_a_kubectl_dump() -> None:
    """Recorded: `kubectl get nodes,pods,events,namespaces -A -o yaml` of this cluster."""
    check_g1(explained(Path("/nowhere"), "web", "--dump", DUMP))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_kubectl_dumps_now(cluster: Cluster, tmp_path: Path, form: str) -> None:
    config = cluster.home / "state" / "pilotage" / "kubeconfig"
    command = ["kubectl", "--kubeconfig", config, "get", "nodes,pods,events,ns", "-A", "-o", form]
    dump = tmp_path / f"dump.{form}"
    dump.write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    check_g1(explained(cluster.home, "web", "--dump", dump))
    piped = pilotage(cluster.home, "explain", "pod", "web", "--dump", "-", stdin=dump.read_text())
    assert piped.returncode == 3


def test_one_node(cluster: Cluster) -> None:
    found = explained(cluster.home, "web", "--node", "n6")
    assert [one["node"] for one in found["nodes"]["list"]] == ["n6"]
    shown = pilotage(cluster.home, "explain", "pod", "web", "--node", "n4").stdout
    assert "first  NodeResourcesFit: Insufficient cpu, preemption may help" in shown


def test_a_bound_pod_and_its_scores(cluster: Cluster) -> None:
    found = explained(cluster.home, "fill-4", code=0)
    assert found["verdict"] == "bound"
    assert {one["node"] for one in found["nodes"]["list"] if one["feasible"]} == {"n4", "n6"}
    assert all(one["scores"] for one in found["nodes"]["list"] if one["feasible"])


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("pod", "nobody"), 1, "there is no unfinished pod nobody in namespace default"),
        (("pod", "web", "-n", "other"), 1, "there is no unfinished pod web in namespace other"),
        (("pod", "web", "--node", "n9"), 1, "there is no node n9"),
        (("pod",), 2, "name one pod"),
        (("node", "n1"), 2, "only pods are explained"),
        (("pod", "web", "--dump", "/nowhere/x.json"), 1, "/nowhere/x.json: No such file"),
        (("pod", "web", "--dump", "x", "--kubeconfig", "y"), 2, "--dump goes together neither"),
        (("pod", "web", "--all", "--node", "n1"), 2, "exclude each other"),
        (("pod", "web", "--scheduler", "http://127.0.0.1:1"), 1, "--scheduler http://127.0.0.1:1: no answer"),
        (("pod", "web", "--scheduler", "ftp://x"), 1, "http://HOST:PORT was expected"),
    ],
)
def test_mistakes_are_one_clear_line(
    cluster: Cluster, arguments: tuple[str, ...], code: int, told: str
) -> None:
    done = pilotage(cluster.home, "explain", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert told in done.stderr


def test_diff(cluster: Cluster, tmp_path: Path) -> None:
    a, other = tmp_path / "a.yaml", tmp_path / "b.yaml"
    a.write_text(DEFAULTS)
    other.write_text(NO_TAINTS)
    same = pilotage(cluster.home, "diff", a, a)
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, "1 pod decided, no difference")
    done = pilotage(cluster.home, "diff", a, other)
    assert (done.returncode, done.stderr) == (1, "")
    assert "default/web\n  goes to  none -> n1, n2, n3\n  fits     only with B: n1, n2, n3\n" in done.stdout
    tree = json.loads(pilotage(cluster.home, "diff", a, other, "--dump", DUMP, "-o", "json").stdout)
    assert (tree["decided"], tree["different"]) == (1, 1)
    assert tree["pods"][0]["feasible"] == {"onlyA": [], "onlyB": ["n1", "n2", "n3"]}
    every = json.loads(pilotage(cluster.home, "diff", a, other, "--all-pods", "-o", "json").stdout)
    assert every["decided"] == 3


def test_trouble_of_diff_is_2(cluster: Cluster, tmp_path: Path) -> None:
    good = tmp_path / "a.yaml"
    good.write_text(DEFAULTS)
    for arguments, told in (
        ((good, tmp_path / "none.yaml"), "none.yaml"),
        ((good, good, "--dump", tmp_path / "none.json"), "none.json: No such file"),
    ):
        done = pilotage(cluster.home, "diff", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert told in done.stderr
