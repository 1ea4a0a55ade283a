"""The story of one resize on a real (embedded) cluster: deferred, room made for it, carried out.

One node of 4 CPU is nearly full. A pod of high priority wants more than is left; nothing is simulated by the
teller: each line is what a watch of pods and events showed, with its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pilotage.client.api import ApiClient, Json, PatchType
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.frontends.demo.runner import DemoError, kind
from pilotage.frontends.local import connect, create_nodes, create_objects
from pilotage.localcluster.nodes import generate
from pilotage.localcluster.process import ServerProcess
from pilotage.runtime.run import RunOptions, serve

WANTED = "2"
_GRACE_SECONDS = 2
_LIMIT_SECONDS = 30.0
_POLL_SECONDS = 0.05
_OPENING_SECONDS = 0.3  # for the watches to be open before anything happens
_TOLD = ("ResizePreempting", "ResizeWaiting", "ResizeFits", "FailedResizePreemption", "Preempted")


@dataclass(frozen=True, slots=True)
class Moment:
    """`seconds` since the resize was asked for; `who` says or does `what`."""

    seconds: float
    who: str
    what: str


@dataclass(slots=True)
class Timeline:
    """Turns what watches show into moments, each once."""

    begin: float = 0.0
    moments: list[Moment] = field(default_factory=list)
    _told: set[tuple[str, str]] = field(default_factory=set)

    def tell(self, who: str, what: str, now: float) -> None:
        if what and (who, what) not in self._told:
            self._told.add((who, what))
            self.moments.append(Moment(round(now - self.begin, 2), who, what))

    def saw_pod(self, event: str, pod: Mapping[str, Any], now: float) -> None:
        name = pod["metadata"]["name"]
        if event == "DELETED":
            self.tell(name, "is gone", now)
        elif pod["metadata"].get("deletionTimestamp"):
            self.tell(name, f"is asked to end, within {_GRACE_SECONDS} s", now)
        elif name == "web":
            self._saw_resize(pod, now)

    def _saw_resize(self, pod: Mapping[str, Any], now: float) -> None:
        status = pod.get("status", {})
        for condition in status.get("conditions", ()):
            if condition["type"] == "PodResizePending" and condition["status"] == "True":
                text = f"{condition['reason']}: {condition.get('message', '')}"
                self.tell("kubelet", text, now)
        if allocated(status) == WANTED:
            self.tell("kubelet", f"allocates {WANTED} CPU to web", now)
        if actual(status) == WANTED:
            self.tell("web", f"runs with {WANTED} CPU", now)

    def saw_event(self, event: Mapping[str, Any], now: float) -> None:
        if event.get("reason") in _TOLD:
            about = (event.get("regarding") or {}).get("name", "")
            self.tell("scheduler", f"{event['reason']} ({about}): {event.get('note', '')}", now)

    @property
    def is_over(self) -> bool:
        return ("web", f"runs with {WANTED} CPU") in self._told


def allocated(status: Mapping[str, Any]) -> str:
    return _cpu((_container(status).get("allocatedResources")) or {})


def actual(status: Mapping[str, Any]) -> str:
    return _cpu((_container(status).get("resources") or {}).get("requests") or {})


def _container(status: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(iter(status.get("containerStatuses") or ()), {})
    return found


def _cpu(amounts: Mapping[str, Any]) -> str:
    return str(amounts.get("cpu", ""))


def objects() -> list[Json]:
    """3.5 of 4 CPU are taken."""
    important = {"metadata": {"name": "important"}, "value": 1000}
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **important}
    return [priority, _pod("web", "1", "important"), _pod("batch-a", "1500m"), _pod("batch-b", "1")]


def _pod(name: str, cpu: str, priority: str = "") -> Json:
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": _GRACE_SECONDS}
    if priority:
        spec["priorityClassName"] = priority
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def run_resize(server: ServerProcess, settings: Settings, registry: Registry) -> Timeline:
    """The whole story against a running server. Raises DemoError, ApiError, TransportError."""
    transport, stop, ready = connect(server), asyncio.Event(), asyncio.Event()
    client = ApiClient(transport)
    try:
        await create_nodes(client, generate(1), lambda: None)
        scheduling = asyncio.create_task(
            serve(transport, settings, registry, stop, RunOptions(), lambda _: ready.set())
        )
        try:
            return await _story(client)
        finally:
            stop.set()
            await scheduling
    finally:
        await transport.close()


async def _story(client: ApiClient) -> Timeline:
    timeline, clock = Timeline(), asyncio.get_running_loop()
    await create_objects(client, objects())
    await _until(client, _all_running, "the pods did not come to run")
    watches = [asyncio.create_task(work) for work in (_pods(client, timeline), _events(client, timeline))]
    try:
        await asyncio.sleep(_OPENING_SECONDS)
        timeline.begin = clock.time()
        resources = {"requests": {"cpu": WANTED}}
        patch = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
        timeline.tell("you", f"web shall have {WANTED} CPU instead of 1", clock.time())
        await client.patch(
            kind("pods"), "web", patch, "default", patch_type=PatchType.STRATEGIC, subresource="resize"
        )
        await _until(client, lambda _: timeline.is_over, "the resize was not carried out")
        return timeline
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _pods(client: ApiClient, timeline: Timeline) -> None:
    clock = asyncio.get_running_loop()
    async for event, pod in client.watch(kind("pods"), "default"):
        timeline.saw_pod(event, pod, clock.time())


async def _events(client: ApiClient, timeline: Timeline) -> None:
    clock = asyncio.get_running_loop()
    async for _, event in client.watch(kind("events.events.k8s.io"), "default"):
        timeline.saw_event(event, clock.time())


async def _until(client: ApiClient, reached: Any, otherwise: str) -> None:
    clock = asyncio.get_running_loop()
    deadline = clock.time() + _LIMIT_SECONDS
    while not reached((await client.list(kind("pods"), "default"))["items"]):
        if clock.time() > deadline:
            raise DemoError(f"{otherwise} within {_LIMIT_SECONDS:.0f} s: is this machine very busy?")
        await asyncio.sleep(_POLL_SECONDS)


def _all_running(pods: list[Json]) -> bool:
    return len(pods) == 3 and all(pod["status"].get("phase") == "Running" for pod in pods)
