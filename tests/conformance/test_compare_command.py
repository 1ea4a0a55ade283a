"""`pilotage compare` of two of our own schedulers on an embedded server: nothing differs, nothing stays."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Running, pilotage
from pilotage.api.kinds import by_resource
from pilotage.client.api import ApiClient
from pilotage.frontends.local import connect, write_kubeconfig
from pilotage.localcluster.process import ServerProcess

DATA = Path(__file__).parent / "data" / "decisions.jsonl.gz"


def left(server: ServerProcess, resource: str) -> list[Any]:
    async def work() -> list[Any]:
        kind = by_resource(resource)
        assert kind is not None
        transport = connect(server)
        try:
            return list((await ApiClient(transport).list(kind))["items"])
        finally:
            await transport.close()

    return asyncio.run(work())


@pytest.mark.slow
def test_two_schedulers_agree_and_the_cluster_is_left_as_it_was(tmp_path: Path) -> None:
    with ServerProcess.start() as server:
        kubeconfig = write_kubeconfig(server, tmp_path / "kubeconfig")
        run = ("run", "--kubeconfig", str(kubeconfig), "--leader-elect=false", "--health-port", "0")
        first = Running(tmp_path, *run)
        try:
            done = pilotage(
                tmp_path,
                *("compare", DATA, "--kubeconfig", kubeconfig, "--start", "-o", "json"),
                *("--vary", "1", "--limit", "3", "--family", "preemption", "--family", "volumes"),
            )
            first.interrupt()
            assert first.end()[0] == 0
        finally:
            first.kill()
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["schedulers"] == ["default-scheduler", "pilotage"]
        assert {one["agreement"] for one in found["scenarios"]} <= {"same", "equal"}
        assert len(found["scenarios"]) == 3
        for resource in ("nodes", "pods", "persistentvolumes", "persistentvolumeclaims"):
            assert left(server, resource) == []


def test_a_cluster_with_nodes_is_refused(tmp_path: Path) -> None:
    with ServerProcess.start() as server:
        kubeconfig = write_kubeconfig(server, tmp_path / "kubeconfig")
        node = tmp_path / "node.yaml"
        node.write_text("{apiVersion: v1, kind: Node, metadata: {name: mine}}\n")
        assert pilotage(tmp_path, "apply", "-f", node, "--kubeconfig", kubeconfig).returncode == 0
        done = pilotage(tmp_path, "compare", DATA, "--kubeconfig", kubeconfig, "--limit", "1")
        assert done.returncode == 1
        assert "the cluster is not empty: there is nodes mine" in done.stderr
        assert [one["metadata"]["name"] for one in left(server, "nodes")] == ["mine"]


def test_files_that_are_no_recordings_are_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    done = pilotage(tmp_path, "compare", bad)
    assert done.returncode == 2
    assert f"{bad}:1: not a recorded scenario" in done.stderr
