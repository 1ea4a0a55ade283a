"""Resizes on a Harness whose nodes have no kubelet: the test says what the kubelet would write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotage.testing.harness import Harness

Tree = dict[str, Any]
PENDING = "PodResizePending"
DISABLED = "PodResizePreemptionDisabled"


class ResizeHarness(Harness):
    """A node n1 of 10 CPU that no kubelet runs on, and pods that stand there from the start."""

    def add_node(self, name: str = "n1", cpu: int = 10, **more: Any) -> None:
        self.create(self.node(name, cpu=cpu, kubelet=False, **more))

    def run_pod(
        self, name: str, cpu: str | int, *, node: str = "n1", priority: int = 0, grace: int = 0, **more: Any
    ) -> None:
        """A pod that its kubelet started with what its spec asks."""
        self.create(self.pod(name, cpu=cpu, priority=priority, grace=grace, nodeName=node, **more))
        self.kubelet(name, cpu)

    def kubelet(self, name: str, has: str | int, *, actual: str | int = "", **conditions: str | None) -> None:
        """The kubelet reports what the pod has. Conditions: type to reason; None takes it away."""
        container = {
            "name": "main",
            "ready": True,
            "started": True,
            "allocatedResources": {"cpu": str(has)},
            "resources": {"requests": {"cpu": str(actual or has)}},
        }
        entries = [condition(kind, reason) for kind, reason in conditions.items()]
        status = {"phase": "Running", "containerStatuses": [container], "conditions": entries}
        self.patch("pods", name, {"status": status}, subresource="status")

    def resize(self, name: str, cpu: str | int) -> None:
        """The user's wish, through the resize subresource."""
        container = {"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}
        self.patch("pods", name, {"spec": {"containers": [container]}}, subresource="resize")

    def defer(self, name: str, wants: str | int, has: str | int) -> None:
        """The user's wish, and the kubelet's answer that there is no room."""
        self.resize(name, wants)
        self.kubelet(name, has, **{PENDING: "Deferred"})

    def admit(self, name: str, cpu: str | int) -> None:
        """The kubelet carries the resize out."""
        self.kubelet(name, cpu, **{PENDING: None})

    def set_policy(self, *owners: str, node: str = "n1") -> None:
        """Who keeps the scheduler from preempting for resizes there."""
        self.patch(
            "nodes", node, {"spec": {"podPreemptionPolicy": {"disableResizePreemption": list(owners)}}}
        )

    # What came of it

    def victims(self) -> list[str]:
        """Names of the pods that the scheduler deleted, in order."""
        deletes = self.requests(method="DELETE", path="/pods/", client="scheduler")
        return [record.path.rpartition("/")[2] for record in deletes]

    def reasons(self, name: str) -> list[str]:
        """Reasons of the scheduler's events about a pod, in order of their first time."""
        return [event["reason"] for event in self.events(name)]

    def last_attempt(self, name: str) -> str:
        """What the last cycle for the pod's resize found."""
        lines = [entry.text for entry in self.story(name) if entry.text.startswith("resize attempt")]
        return lines[-1] if lines else ""

    def writes_on(self, name: str) -> list[str]:
        """Method and path end of every write of the scheduler on the pod, events left out."""
        records = self.requests(path=f"/pods/{name}(/|$)", client="scheduler")
        return [f"{r.method} {r.path.rpartition(name)[2]}" for r in records if r.method != "GET"]


def condition(kind: str, reason: str | None) -> Mapping[str, Any]:
    if reason is None:
        return {"type": kind, "$patch": "delete"}
    return {"type": kind, "status": "True", "reason": reason}
