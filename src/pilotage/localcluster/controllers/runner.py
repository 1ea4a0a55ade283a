"""Drives one controller: a queue of keys with due times, one reconcile per key at a time, retries.

Laws: a key that changes while its writes run is looked at again afterwards; a failed write or a bug in
a reconcile delays that key (growing, capped) and nothing else; work is done in slices so that others on
the loop get their turn.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable
from typing import Protocol

import msgspec

from pilotage.api.decode import DecodeError, decode_object
from pilotage.client.api import ApiClient
from pilotage.client.backoff import Backoff
from pilotage.client.errors import ApiError
from pilotage.client.transport import TransportError
from pilotage.localcluster.controllers.garbage import Collect
from pilotage.localcluster.controllers.plan import Controller, Create, Delete, Plan, RetryLater, Write
from pilotage.localcluster.objects import Cache, Moved, kind_of

WRITES_AT_ONCE = 16
KEYS_PER_SLICE = 50
RETRY_LATER_SECONDS = 1.0
EARLY_SECONDS = 1e-6  # a loop may call a hair before the time
_NOT_FOUND, _CONFLICT = 404, 409


class Clock(Protocol):
    def time(self) -> float:
        """Seconds since the epoch."""


class Runner:
    def __init__(
        self,
        controller: Controller,
        cache: Cache,
        client: ApiClient,
        clock: Clock,
        *,
        on_moved: Callable[[Moved], None],
        on_problem: Callable[[str], None],
        seed: int = 0,
    ) -> None:
        """`on_moved` gets what answers to our writes changed in the cache."""
        self._controller = controller
        self._cache = cache
        self._client = client
        self._clock = clock
        self._on_moved = on_moved
        self._on_problem = on_problem
        self._rng = random.Random(f"{seed}/{controller.name}")
        # key -> loop time at which it is due; a key is in the heap (maybe stale) exactly when it is here.
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._count = 0
        # Keys whose writes run now.
        self._busy: set[str] = set()
        # Keys that failed last time.
        self._backoffs: dict[str, Backoff] = {}
        self._wake = asyncio.Event()
        self._slots = asyncio.Semaphore(WRITES_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        return self._controller.name

    def notify(self, moved: Moved) -> None:
        for key in self._controller.keys(moved, self._cache):
            self.add(key, self._controller.settle)

    def add(self, key: str, delay: float) -> None:
        """Look at the key in `delay` seconds, or earlier if that is planned already."""
        due = asyncio.get_running_loop().time() + delay
        if self._due.get(key, float("inf")) <= due:
            return
        self._due[key] = due
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, key))
        self._wake.set()

    async def run(self) -> None:
        """Never returns; cancellation cancels the writes under way."""
        try:
            while True:
                for _ in range(KEYS_PER_SLICE):
                    key = self._pop()
                    if key is None:
                        await self._wait()
                        break
                    self._look_at(key)
                await asyncio.sleep(0)
        finally:
            for task in list(self._tasks):
                task.cancel()

    def _pop(self) -> str | None:
        now = asyncio.get_running_loop().time() + EARLY_SECONDS
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due and key not in self._busy:
                del self._due[key]
                return key
        return None

    async def _wait(self) -> None:
        """Until the next key is due or news come."""
        self._wake.clear()
        loop = asyncio.get_running_loop()
        timer = loop.call_at(self._heap[0][0], self._wake.set) if self._heap else None
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _look_at(self, key: str) -> None:
        try:
            plan = self._controller.reconcile(key, self._cache, self._clock.time())
        except Exception as bug:  # a bug in one controller must not end the cluster
            self._fail(key, f"{type(bug).__name__}: {bug}")
            return
        if not plan.writes:
            self._done(key, plan)
            return
        self._busy.add(key)
        task = asyncio.get_running_loop().create_task(
            self._carry_out(key, plan), name=f"{self._controller.name} {key}"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, key: str, plan: Plan) -> None:
        try:
            failures = [text for text in await self._write_all(plan) if text is not None]
        finally:
            self._busy.discard(key)
        if failures:
            self._fail(key, failures[0])
        else:
            self._done(key, plan)
        self._requeue_if_changed(key)

    async def _write_all(self, plan: Plan) -> list[str | None]:
        if len(plan.writes) == 1:
            return [await self._write(plan.writes[0])]
        return list(await asyncio.gather(*(self._write(write) for write in plan.writes)))

    async def _write(self, write: Write) -> str | None:
        """The text of the failure, None when all is well. `RetryLater` fails with an empty text."""
        async with self._slots:
            try:
                answer = await write.apply(self._client)
            except RetryLater:
                return ""
            except ApiError as error:
                return None if _is_settled(write, error) else f"{error}"
            except TransportError as error:
                return f"{error}"
        self._keep(write, answer)
        return None

    def _keep(self, write: Write, answer: object) -> None:
        """Read your own writes: the answer goes into the cache at once."""
        if not write.resource:
            return
        moved: Moved | None
        if answer is None:
            assert isinstance(write, Delete)
            key = f"{write.namespace}/{write.name}" if write.namespace else write.name
            moved = self._cache.answered_deleted(write.resource, key, write.uid)
        else:
            try:
                view = decode_object(kind_of(write.resource), msgspec.json.encode(answer))
            except DecodeError as error:
                self._on_problem(f"{self._controller.name}: {error}")
                return
            moved = self._cache.answered(write.resource, view, self._clock.time())
        if moved is not None:
            self._on_moved(moved)

    def _done(self, key: str, plan: Plan) -> None:
        self._backoffs.pop(key, None)
        if plan.requeue_after is not None:
            self.add(key, plan.requeue_after)

    def _fail(self, key: str, text: str) -> None:
        if not text:
            self.add(key, RETRY_LATER_SECONDS)
            return
        self._on_problem(f"{self._controller.name} {key}: {text}")
        backoff = self._backoffs.setdefault(key, Backoff(self._rng, base=0.2, cap=15.0))
        self.add(key, backoff.next())

    def _requeue_if_changed(self, key: str) -> None:
        """A key that came due while it was busy was popped and passed over: put it back."""
        due = self._due.pop(key, None)
        if due is not None:
            self.add(key, max(0.0, due - asyncio.get_running_loop().time()))


def _is_settled(write: Write, error: ApiError) -> bool:
    """What we wanted to change or delete is gone, or has become another object: news will tell."""
    if isinstance(write, Delete | Collect):
        return error.status in (_NOT_FOUND, _CONFLICT)
    return error.status == _NOT_FOUND and not isinstance(write, Create)
