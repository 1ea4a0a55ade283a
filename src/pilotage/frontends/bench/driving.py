"""Drives a storm through the API like any client, and watches what comes of it.

Laws: it knows no scheduler; time is the running loop's, so the same code measures in real and in virtual
time; whatever it starts has ended when it returns.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeAlias

from pilotage.api.kinds import Kind, by_resource
from pilotage.client.api import ApiClient, ApiError, Json
from pilotage.client.transport import TransportError
from pilotage.frontends.bench import objects
from pilotage.frontends.bench.objects import Place
from pilotage.frontends.bench.podtimes import PodTimes
from pilotage.frontends.bench.scenario import Storm

Progress: TypeAlias = Callable[[PodTimes], None]
POLL_SECONDS = 0.1
LAST_SECONDS = 1.0  # for what comes twice or too late
_AT_ONCE = 8
_REOPEN_SECONDS = 0.2
_ACCEPTED_SECONDS = 10.0
_FORBIDDEN = 403


def kind(resource: str) -> Kind:
    found = by_resource(resource)
    assert found is not None
    return found


async def create(client: ApiClient, trees: Iterable[Json]) -> None:
    """Objects of one kind in their order, a few at a time. Raises ApiError, TransportError."""
    waiting = iter(trees)

    async def worker() -> None:
        for tree in waiting:
            await client.create(kind(f"{tree['kind'].lower()}s"), tree)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(worker())
    except ExceptionGroup as problems:
        raise problems.exceptions[0] from None


async def until_accepted(client: ApiClient, pod: Json) -> None:
    """Until such a pod would be taken: a new namespace has no service account for a moment.

    Raises ApiError for a refusal that lasts.
    """
    clock = asyncio.get_running_loop()
    deadline = clock.time() + _ACCEPTED_SECONDS
    while True:
        try:
            await client.create(kind("pods"), pod, dry_run=True)
            return
        except ApiError as problem:
            if problem.status != _FORBIDDEN or clock.time() > deadline:
                raise
        await asyncio.sleep(POLL_SECONDS)


async def drive(client: ApiClient, storm: Storm, place: Place, timeout: float, show: Progress) -> PodTimes:
    """The pods of a storm, in a namespace that is there.

    Ends when all is decided, or `timeout` seconds after the last pod was created.
    """
    times = PodTimes()
    async with watching(client, place, times):
        showing = asyncio.create_task(_show(times, show))
        try:
            await _create_all(client, storm, place)
            await _until_done(storm, times, timeout)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
        show(times)
    return times


async def _create_all(client: ApiClient, storm: Storm, place: Place) -> None:
    await create(client, objects.bad_pods(storm, place))
    good = objects.good_pods(storm, place)
    await asyncio.sleep(storm.delay)
    if not storm.rate:
        await create(client, good)
        return
    clock = asyncio.get_running_loop()
    begin = clock.time()
    for index, pod in enumerate(good):
        await asyncio.sleep(max(0.0, begin + index / storm.rate - clock.time()))
        await client.create(kind("pods"), pod)


async def _until_done(storm: Storm, times: PodTimes, timeout: float) -> None:
    clock = asyncio.get_running_loop()
    deadline = clock.time() + timeout
    while clock.time() < deadline:
        if times.is_done(storm):
            await asyncio.sleep(LAST_SECONDS)
            if times.is_done(storm):
                return
        await asyncio.sleep(POLL_SECONDS)


async def _show(times: PodTimes, show: Progress) -> None:
    while True:
        show(times)
        await asyncio.sleep(2 * POLL_SECONDS)


@contextlib.asynccontextmanager
async def watching(client: ApiClient, place: Place, times: PodTimes) -> AsyncIterator[None]:
    """Records the run's pods while the block runs. Raises what ended the watch for good."""
    version = (await client.list(kind("pods"), place.namespace))["metadata"]["resourceVersion"]
    task = asyncio.create_task(_watch(client, place, times, version))
    body = asyncio.current_task()
    assert body is not None
    task.add_done_callback(lambda ended: None if ended.cancelled() else body.cancel())
    try:
        yield
    except asyncio.CancelledError:
        if task.done() and not task.cancelled() and (problem := task.exception()) is not None:
            body.uncancel()
            raise problem from None
        raise
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _watch(client: ApiClient, place: Place, times: PodTimes, version: str) -> None:
    """Goes on from the last event when the server ends the stream, as servers do. Raises ApiError."""
    clock = asyncio.get_running_loop()
    while True:
        try:
            async for event, pod in client.watch(kind("pods"), place.namespace, resource_version=version):
                version = pod["metadata"]["resourceVersion"]
                times.record(event, pod, clock.time())
        except TransportError:
            pass  # the next try tells whether anybody is there
        await asyncio.sleep(_REOPEN_SECONDS)
