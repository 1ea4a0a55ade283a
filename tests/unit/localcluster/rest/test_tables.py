"""Tables: the cells that kubectl shows."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.localcluster.rest.tables.nodes import status_text as node_status
from pilotage.localcluster.rest.tables.pods import status_text
from pilotage.localcluster.rest.timestamps import duration_text
from restkit import START, TABLE, Api


def pod(*, deleted: bool = False, init: list[Any] | None = None, spec: Any = None, **status: Any) -> Any:
    meta: dict[str, Any] = {"name": "p"}
    if deleted:
        meta["deletionTimestamp"] = "2027-01-01T00:00:00Z"
    spec = spec or {
        "containers": [{"name": "c"}],
        "initContainers": [{"name": f"i{n}"} for n in range(len(init or ()))],
    }
    return {
        "metadata": meta,
        "spec": spec,
        "status": {**status, **({"initContainerStatuses": init} if init else {})},
    }


def state(kind: str, *, name: str = "c", ready: bool = False, **more: Any) -> Any:
    return {"name": name, "ready": ready, "state": {kind: more}}


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (pod(phase="Pending"), "Pending"),
        (pod(phase="Failed", reason="Evicted"), "Evicted"),
        (
            pod(
                phase="Pending",
                conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            ),
            "SchedulingGated",
        ),
        (pod(phase="Running", containerStatuses=[state("running", ready=True)]), "Running"),
        (
            pod(phase="Pending", containerStatuses=[state("waiting", reason="ContainerCreating")]),
            "ContainerCreating",
        ),
        (
            pod(phase="Running", containerStatuses=[state("waiting", reason="CrashLoopBackOff")]),
            "CrashLoopBackOff",
        ),
        (pod(phase="Failed", containerStatuses=[state("terminated", reason="Error", exitCode=1)]), "Error"),
        (pod(phase="Failed", containerStatuses=[state("terminated", exitCode=3)]), "ExitCode:3"),
        (pod(phase="Failed", containerStatuses=[state("terminated", exitCode=0, signal=9)]), "Signal:9"),
        (
            pod(phase="Succeeded", containerStatuses=[state("terminated", reason="Completed", exitCode=0)]),
            "Completed",
        ),
        (
            pod(
                phase="Running",
                containerStatuses=[
                    state("terminated", reason="Completed"),
                    state("running", ready=True, name="d"),
                ],
            ),
            "NotReady",
        ),
        (
            pod(
                phase="Running",
                conditions=[{"type": "Ready", "status": "True"}],
                containerStatuses=[
                    state("terminated", reason="Completed"),
                    state("running", ready=True, name="d"),
                ],
            ),
            "Running",
        ),
        (pod(phase="Running", deleted=True), "Terminating"),
        (pod(phase="Running", deleted=True, reason="NodeLost"), "Unknown"),
        (
            pod(
                phase="Pending",
                init=[
                    state("terminated", name="i0", exitCode=0),
                    state("running", name="i1"),
                    state("waiting", name="i2"),
                ],
            ),
            "Init:1/3",
        ),
        (
            pod(phase="Pending", init=[state("waiting", name="i0", reason="ImagePullBackOff")]),
            "Init:ImagePullBackOff",
        ),
        (pod(phase="Pending", init=[state("waiting", name="i0", reason="PodInitializing")]), "Init:0/1"),
        (pod(phase="Pending", init=[state("terminated", name="i0", exitCode=2)]), "Init:ExitCode:2"),
        (
            pod(phase="Pending", init=[state("terminated", name="i0", exitCode=2, reason="Error")]),
            "Init:Error",
        ),
        (
            pod(
                phase="Running",
                spec={
                    "containers": [{"name": "c"}],
                    "initContainers": [{"name": "s", "restartPolicy": "Always"}],
                },
                init=[{**state("running", name="s", ready=True), "started": True}],
                containerStatuses=[state("running", ready=True)],
            ),
            "Running",
        ),
        (pod(), "Unknown"),
    ],
)
def test_pod_status_text(tree: Any, text: str) -> None:
    assert status_text(tree) == text


@pytest.mark.parametrize(
    ("ready", "cordoned", "text"),
    [
        ("True", False, "Ready"),
        ("False", False, "NotReady"),
        ("Unknown", True, "NotReady,SchedulingDisabled"),
        (None, False, "Unknown"),
        ("True", True, "Ready,SchedulingDisabled"),
    ],
)
def test_node_status_text(ready: str | None, cordoned: bool, text: str) -> None:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    assert node_status({"spec": {"unschedulable": cordoned}, "status": {"conditions": conditions}}) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (700, "11m"),
        (3600 * 3, "3h"),
        (3600 * 4 + 300, "4h5m"),
        (3600 * 9, "9h"),
        (86400 * 2, "2d"),
        (86400 * 3 + 3600, "3d1h"),
        (86400 * 9, "9d"),
        (86400 * 365 * 3 + 86400, "3y1d"),
        (-5, "<invalid>"),
    ],
)
def test_ages(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text


def columns(api: Api, path: str) -> tuple[list[str], list[str]]:
    """Names of the normal and of the wide columns."""
    found = api.get(path, accept=TABLE).body["columnDefinitions"]
    return [c["name"] for c in found if not c["priority"]], [c["name"] for c in found if c["priority"]]


@pytest.mark.parametrize(
    ("path", "normal", "wide"),
    [
        ("/api/v1/pods", "Name Ready Status Restarts Age", "IP|Node|Nominated Node|Readiness Gates"),
        (
            "/api/v1/nodes",
            "Name Status Roles Age Version",
            "Internal-IP|External-IP|OS-Image|Kernel-Version|Container-Runtime",
        ),
        ("/api/v1/namespaces", "Name Status Age", ""),
        ("/apis/coordination.k8s.io/v1/leases", "Name Holder Age", ""),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", "Name Value Global-Default Age PreemptionPolicy", ""),
        ("/apis/apps/v1/deployments", "Name Ready Up-to-date Available Age", "Containers|Images|Selector"),
    ],
)
def test_columns(path: str, normal: str, wide: str) -> None:
    assert columns(Api(), path) == (normal.split(), wide.split("|") if wide else [])


def test_event_cells_come_in_kubectls_order() -> None:
    api = Api()
    found = api.get("/api/v1/events", accept=TABLE).body["columnDefinitions"]
    assert [c["name"] for c in found] == [
        "Last Seen",
        "Type",
        "Reason",
        "Object",
        "Subobject",
        "Source",
        "Message",
        "First Seen",
        "Count",
        "Name",
    ]


def test_every_kind_fills_its_columns() -> None:
    api = Api()
    api.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    api.pod("p", node="n")
    api.now = START + 65
    for path in (
        "/api/v1/pods",
        "/api/v1/nodes",
        "/api/v1/services",
        "/api/v1/configmaps",
        "/api/v1/namespaces",
    ):
        table = api.get(path, accept=TABLE).body
        for row in table["rows"]:
            assert len(row["cells"]) == len(table["columnDefinitions"])
    row = api.get("/api/v1/namespaces/default/pods/p", accept=TABLE).body["rows"][0]
    assert row["cells"] == ["p", "0/1", "Pending", "0", "65s", "<none>", "n", "<none>", "<none>"]


def test_a_kind_without_columns_of_its_own_shows_its_creation() -> None:
    api = Api()
    assert columns(api, "/apis/node.k8s.io/v1/runtimeclasses")[0] == ["Name", "Created At"]
