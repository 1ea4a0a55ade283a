"""The official Python client and kr8s against the embedded cluster: pods from creation to deletion."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterkit import eventually
from pilotage.localcluster.process import ServerProcess

pytestmark = [
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the clients' own code, not ours
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets they leave open
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SPEC = {
    "containers": [{"name": "c", "image": "registry.example/x:1", "resources": {"requests": {"cpu": "0.1"}}}]
}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess.start() as server:
        yield server


@pytest.fixture(scope="module")
def kubeconfig(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return server.write_kubeconfig(tmp_path_factory.mktemp("python") / "config")


@pytest.fixture
def official(kubeconfig: Path) -> Iterator[Any]:
    kubernetes = pytest.importorskip("kubernetes", reason="NO kubernetes CLIENT: its test was NOT run")
    client = kubernetes.config.new_client_from_config(str(kubeconfig))
    with client:
        yield kubernetes, client


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": SPEC}


def test_the_official_client(official: Any) -> None:
    kubernetes, client = official
    core = kubernetes.client.CoreV1Api(client)
    made = core.create_namespaced_pod("default", pod("one", app="official"))
    assert made.spec.containers[0].resources.requests == {"cpu": "100m"}
    assert made.metadata.creation_timestamp is not None
    listed = core.list_namespaced_pod("default", label_selector="app=official")
    assert [item.metadata.name for item in listed.items] == ["one"]

    core.create_namespaced_pod("default", pod("two", app="official"))
    patched = core.patch_namespaced_pod("one", "default", {"metadata": {"labels": {"new": "1"}}})
    assert patched.metadata.labels == {"app": "official", "new": "1"}
    core.delete_namespaced_pod("two", "default", grace_period_seconds=0)
    told = []
    stream = kubernetes.watch.Watch()
    for event in stream.stream(
        core.list_namespaced_pod,
        "default",
        label_selector="app=official",
        resource_version=listed.metadata.resource_version,
        timeout_seconds=20,
    ):
        told.append((event["type"], event["object"].metadata.name))
        if len(told) == 3:
            stream.stop()
    assert told == [("ADDED", "two"), ("MODIFIED", "one"), ("DELETED", "two")]

    with pytest.raises(kubernetes.client.ApiException) as caught:
        core.read_namespaced_pod("two", "default")
    assert caught.value.status == 404
    with pytest.raises(kubernetes.client.ApiException) as caught:
        core.create_namespaced_pod("default", pod("one"))
    assert (caught.value.status, caught.value.reason) == (409, "Conflict")


def test_the_official_client_binds_scales_and_evicts(official: Any) -> None:
    kubernetes, client = official
    core, apps = kubernetes.client.CoreV1Api(client), kubernetes.client.AppsV1Api(client)
    node = {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}
    core.create_node(node)
    core.create_namespaced_pod("default", pod("bound"))
    binding = {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n1"}}
    core.create_namespaced_pod_binding("bound", "default", binding, _preload_content=False)
    eventually(lambda: core.read_namespaced_pod("bound", "default").status.phase == "Running", "the pod runs")
    core.create_namespaced_pod_eviction("bound", "default", {"metadata": {"name": "bound"}})
    assert core.read_namespaced_pod("bound", "default").metadata.deletion_timestamp is not None

    labels = {"app": "scaled"}
    template = {"metadata": {"labels": labels}, "spec": SPEC}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    apps.create_namespaced_deployment("default", {"metadata": {"name": "scaled"}, "spec": spec})
    apps.patch_namespaced_deployment_scale("scaled", "default", {"spec": {"replicas": 2}})
    assert apps.read_namespaced_deployment_scale("scaled", "default").spec.replicas == 2
    pages = core.list_namespace(limit=2)
    assert pages.metadata._continue
    assert len(core.list_namespace(_continue=pages.metadata._continue).items) == 2


def test_the_dynamic_client(official: Any) -> None:
    from kubernetes import dynamic

    _, client = official
    api = dynamic.DynamicClient(client)
    pods = api.resources.get(api_version="v1", kind="Pod")
    pods.create(body=pod("dynamic", app="dynamic"), namespace="default")
    assert [
        item.metadata.name for item in pods.get(namespace="default", label_selector="app=dynamic").items
    ] == ["dynamic"]
    pods.patch(name="dynamic", namespace="default", body={"metadata": {"annotations": {"a": "b"}}})
    assert pods.get(name="dynamic", namespace="default").metadata.annotations.a == "b"
    pods.delete(name="dynamic", namespace="default")


@pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported:UserWarning")
def test_kr8s(kubeconfig: Path) -> None:
    pytest.importorskip("kr8s", reason="NO kr8s: its test was NOT run")
    asyncio.run(_kr8s_session(kubeconfig))


async def _kr8s_session(kubeconfig: Path) -> None:
    import kr8s.asyncio
    from kr8s.asyncio.objects import Pod

    api = await kr8s.asyncio.api(kubeconfig=str(kubeconfig))
    version = await api.version()
    assert version["gitVersion"].startswith("v1.")
    made = await Pod(pod("kr", app="kr8s"), api=api)
    await made.create()
    found = [item async for item in api.get("pods", namespace="default", label_selector={"app": "kr8s"})]
    assert [item.name for item in found] == ["kr"]
    await made.patch({"metadata": {"labels": {"more": "1"}}})
    await made.refresh()
    assert made.labels["more"] == "1"
    told = []
    watching = api.watch("pods", namespace="default", label_selector="app=kr8s")
    async for kind, item in watching:
        told.append((kind, item.name))
        if kind == "DELETED":
            break
        await made.delete()
    await watching.aclose()
    assert told[0] == ("ADDED", "kr")
    assert told[-1] == ("DELETED", "kr")
    assert not await made.exists()
