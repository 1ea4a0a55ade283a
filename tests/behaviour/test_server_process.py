"""The server as a process: who gets in, what it listens on, how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterkit import Http, eventually
from pilotage.localcluster.process import ServerProcess, ServerStartError

pytestmark = [pytest.mark.network, pytest.mark.slow]

PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess.start(services=False, history=50) as server:
        yield server


@pytest.fixture
def http(server: ServerProcess) -> Http:
    return Http(server)


@pytest.mark.parametrize("token", ["", "wrong"])
def test_nobody_gets_in_without_the_token(http: Http, token: str) -> None:
    status, headers, body = http.call("GET", "/api/v1/pods", token=token)
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert json.loads(body)["reason"] == "Unauthorized"
    assert http.call("GET", "/healthzz", token=token)[0] == 401
    assert http.call("GET", "/api", token=token)[0] == 401


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz?verbose", "/version"])
def test_health_and_version_are_open(http: Http, path: str) -> None:
    assert http.call("GET", path, token="")[0] == 200


def test_the_token_is_random_and_the_address_is_loopback(server: ServerProcess) -> None:
    assert len(server.token) >= 40
    assert server.url.startswith("https://127.0.0.1:")


def test_a_body_that_is_too_large_is_refused(http: Http) -> None:
    status, _, body = http.call("POST", PODS, b" " * (3 * 1024 * 1024 + 1))
    assert (status, json.loads(body)["reason"]) == (413, "RequestEntityTooLarge")


def test_encoded_paths_and_queries(http: Http) -> None:
    made = http.call(
        "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "system:x"}}
    )
    assert made[0] == 201
    assert http.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Ax")[0] == 200
    assert http.get("/api/v1/namespaces?labelSelector=kubernetes.io%2Fmetadata.name+in+(default)")["items"]
    assert http.call("HEAD", "/api/v1/namespaces")[2] == b""


def test_discovery_is_not_sent_twice(http: Http) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    status, headers, _ = http.call("GET", "/apis", Accept=accept)
    assert status == 200
    status, _, body = http.call("GET", "/apis", Accept=accept, If_None_Match=headers["etag"])
    assert (status, body) == (304, b"")


def test_a_watch_flushes_each_event(server: ServerProcess, http: Http) -> None:
    with _watch(server, PODS) as lines:
        http.call("POST", PODS, POD)
        assert json.loads(lines.readline())["type"] == "ADDED"
        http.call("DELETE", f"{PODS}/p")
        assert json.loads(lines.readline())["type"] == "DELETED"


def _watch(server: ServerProcess, path: str) -> Any:
    import ssl
    import urllib.request

    request = urllib.request.Request(f"{server.url}{path}?watch=1")
    request.add_header("Authorization", f"Bearer {server.token}")
    context = ssl.create_default_context(cadata=server.ca_pem)
    return urllib.request.urlopen(request, context=context, timeout=20)


def test_a_client_that_does_not_read_costs_others_nothing(server: ServerProcess, http: Http) -> None:
    with _watch(server, "/api/v1/namespaces/default/configmaps"):
        for index in range(120):
            body = {"metadata": {"name": f"c{index}"}, "data": {"x": "y" * 50_000}}
            assert http.call("POST", "/api/v1/namespaces/default/configmaps", body)[0] == 201
        assert len(http.get("/api/v1/namespaces/default/configmaps")["items"]) >= 120
    assert http.call("GET", "/healthz")[0] == 200


def test_a_busy_port_is_one_clear_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServerStartError) as caught:
            ServerProcess.start(port, services=False)
    assert str(caught.value) == f"port {port} is in use: choose another one, or 0 to have a free one picked"


def test_the_kubeconfig_is_private_and_nobody_elses_is_overwritten(
    server: ServerProcess, tmp_path: Path
) -> None:
    path = server.write_kubeconfig(tmp_path / "sub" / "config")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"]["server"] == server.url
    assert server.write_kubeconfig(path) == path
    foreign = tmp_path / "mine"
    foreign.write_text("apiVersion: v1\n")
    with pytest.raises(FileExistsError, match="not written by pilotage"):
        server.write_kubeconfig(foreign)
    assert foreign.read_text() == "apiVersion: v1\n"


def test_stopping_is_quick_with_an_open_watch_and_may_be_repeated() -> None:
    server = ServerProcess.start(services=False)
    with _watch(server, "/api/v1/pods"):
        server.stop()
        server.stop()
    assert not server.is_running
    assert server._child.returncode == 0


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM])
def test_the_child_ends_with_its_parent(way: signal.Signals) -> None:
    code = (
        "import sys, time\n"
        "from pilotage.localcluster.process import ServerProcess\n"
        "server = ServerProcess.start(services=False)\n"
        "print(server.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert _is_alive(child)
        parent.send_signal(way)
        parent.wait(10)
    eventually(lambda: not _is_alive(child), "the server ends with its parent", seconds=8)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_a_child_that_outlives_the_thread_that_started_it() -> None:
    import threading

    started: list[ServerProcess] = []
    thread = threading.Thread(target=lambda: started.append(ServerProcess.start(services=False)))
    thread.start()
    thread.join()
    with started[0] as server:
        assert Http(server).call("GET", "/healthz")[0] == 200


CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.mark.parametrize("services", [True, False])
def test_a_cluster_that_makes_volumes_has_a_default_class(services: bool) -> None:
    """The claim names none; it gets the class, and a volume once somebody chose a node."""
    with ServerProcess.start(services=services) as server:
        http = Http(server)
        classes = http.get("/apis/storage.k8s.io/v1/storageclasses")["items"]
        assert [one["metadata"]["name"] for one in classes] == (["standard"] if services else [])
        status, _, body = http.call("POST", CLAIMS, json.dumps(CLAIM).encode())
        assert status == 201
        assert json.loads(body)["spec"].get("storageClassName") == ("standard" if services else None)
        if services:
            node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}}
            assert http.call("POST", "/api/v1/nodes", json.dumps(node).encode())[0] == 201
            claim = http.get(f"{CLAIMS}/data")
            claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "n1"}
            assert http.call("PUT", f"{CLAIMS}/data", json.dumps(claim).encode())[0] == 200
            eventually(lambda: http.get(f"{CLAIMS}/data")["status"]["phase"] == "Bound", "the claim is bound")
