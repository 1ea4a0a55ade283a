"""Several `pilotage run` processes over one server: one leads, another goes on when it is gone."""

from __future__ import annotations

import os
import selectors
import signal
from pathlib import Path
from typing import Any

import pytest

from clikit import Running
from clusterkit import Http, eventually
from pilotage.localcluster.process import ServerProcess

pytestmark = [pytest.mark.network, pytest.mark.slow]

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
QUICK = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period",
    "500ms",
)


def replica(home: Path, kubeconfig: Path) -> Running:
    return Running(home, "run", "--kubeconfig", kubeconfig, "--health-port", "0", *QUICK)


def test_one_leads_and_another_goes_on(tmp_path: Path) -> None:
    with ServerProcess.start(services=False) as server:
        kubeconfig = tmp_path / "kubeconfig"
        server.write_kubeconfig(kubeconfig)
        http = Http(server)

        def lease() -> dict[str, Any]:
            spec: dict[str, Any] = http.get(LEASE)["spec"]
            return spec

        running: list[Running] = []
        try:
            for _ in range(3):
                running.append(replica(tmp_path, kubeconfig))
                if len(running) == 1:
                    running[0].wait_for("ready\n")
            first, second, third = running
            killed = lease()["holderIdentity"]
            first.process.kill()
            first.end()

            eventually(lambda: lease()["holderIdentity"] not in ("", killed), "another one leads")
            assert lease()["leaseTransitions"] == 1
            leader, other = _ready_first(second, third)
            # One that was frozen longer than its lease ends by itself when it goes on.
            frozen = lease()["holderIdentity"]
            os.kill(leader.process.pid, signal.SIGSTOP)
            eventually(lambda: lease()["holderIdentity"] not in ("", frozen), "the last one leads")
            os.kill(leader.process.pid, signal.SIGCONT)
            code, err = leader.end()
            assert code == 1
            assert "lease kube-system/kube-scheduler" in err
            assert "Traceback" not in err
            other.wait_for("ready\n")
            other.interrupt()
            assert other.end()[0] == 0
            assert lease()["holderIdentity"] == ""
        finally:
            for one in running:
                one.kill()


def _ready_first(one: Running, two: Running) -> tuple[Running, Running]:
    """Who of the two says that it is ready, and the other."""
    with selectors.DefaultSelector() as selector:
        for each in (one, two):
            assert each.process.stdout is not None
            selector.register(each.process.stdout, selectors.EVENT_READ, each)
        found = selector.select(20)
    assert len(found) == 1
    leader: Running = found[0][0].data
    return leader, two if leader is one else one
