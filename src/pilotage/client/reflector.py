"""List and watch one kind for ever, and tell each change once.

Why: everything that decides (scheduler, kubelets, controllers) believes what its reflectors told. A lost
delete is lost room; a repeated event is wrong accounting.

Laws: a watch resumes at the list's own resourceVersion, or the last event's or bookmark's; never at an
item's, never at an empty one. 410 in any form (HTTP status, ERROR event in a 200 stream, in the middle
of a paged list) means: list again, tell the difference. Nothing is repeated without a wait that grows,
and a server's Retry-After is kept. A stream silent for `silence_seconds` is taken for dead. One
undecodable object is told, counted and passed over. `on_change` is called synchronously, in order.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NoReturn

from pilotage.api.kinds import Kind
from pilotage.api.wire import Request
from pilotage.client.backoff import Backoff
from pilotage.client.decoding import BrokenFrameError, Decoder, Frame, FrameType, Page, TypedDecoder
from pilotage.client.errors import ApiError, error_of_body, error_of_response
from pilotage.client.known import Change, ChangeType, KnownObjects, Seen
from pilotage.client.lines import closed_at_end
from pilotage.client.transport import Stream, Transport, TransportError

PAGE_SIZE = 500
LIST_SECONDS = 60.0
OPEN_SECONDS = 30.0
HEALTHY_SECONDS = 10.0  # a watch that lived this long was no failure, even if nothing happened
TURN = 200  # changes told before other tasks get a turn
_OK = 200
MAX_REFUSALS = 3
_TOO_MANY_REQUESTS = 429
_RETRY_SAME_WATCH = frozenset({401, 403, 429, 500, 502, 503})


@dataclass(frozen=True, slots=True)
class ReflectorStatistics:
    """`relists` counts lists after the first; `changes` what was told; `last_error` is "" after success."""

    lists: int = 0
    relists: int = 0
    watches: int = 0
    frames: int = 0
    changes: int = 0
    undecodable: int = 0
    failures: int = 0
    known: int = 0
    last_error: str = ""
    is_synced: bool = False


class _ListAgainError(Exception):
    """The watch cannot go on from where it was."""


class Reflector:
    """Run it as a task; cancel the task to stop it. `synced` is set once the first list was told."""

    def __init__(
        self,
        transport: Transport,
        kind: Kind,
        on_change: Callable[[Change], None],
        *,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
        decoder: Decoder | None = None,
        seed: int | str = 0,
        page_size: int = PAGE_SIZE,
        silence_seconds: float = 120.0,
        on_problem: Callable[[str], None] | None = None,
    ) -> None:
        """`on_problem` gets one line per failure. `page_size` 0 lists without pages."""
        self.kind = kind
        self.synced = asyncio.Event()
        self._transport = transport
        self._on_change = on_change
        self._path = kind.collection_path(namespace)
        self._selectors = _present(fieldSelector=field_selector, labelSelector=label_selector)
        self._decoder = decoder or TypedDecoder(kind)
        self._rng = random.Random(f"{seed}/{kind.resource}")
        self._backoff = Backoff(self._rng)
        self._page_size = page_size
        self._silence = silence_seconds
        self._on_problem = on_problem
        self._known = KnownObjects(self._decoder.placeholder)
        # Where the next watch resumes; "" exactly when a list has to come first.
        self._version = ""
        self._counts = {"lists": 0, "watches": 0, "frames": 0, "changes": 0, "undecodable": 0, "failures": 0}
        self._last_error = ""
        self._refusals = 0  # in a row, without an event between them

    @property
    def known(self) -> KnownObjects:
        """What was told so far, to read."""
        return self._known

    def statistics(self) -> ReflectorStatistics:
        return ReflectorStatistics(
            relists=max(0, self._counts["lists"] - 1),
            known=len(self._known),
            last_error=self._last_error,
            is_synced=self.synced.is_set(),
            **self._counts,
        )

    async def run(self) -> None:
        """Never returns; cancellation closes the open stream."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except (_ListAgainError, BrokenFrameError) as problem:
                self._version = ""
                await self._wait(problem)
            except ApiError as problem:
                self._count_refusal(problem)
                await self._wait(problem)
            except TransportError as problem:
                await self._wait(problem)

    def _count_refusal(self, problem: ApiError) -> None:
        """A server that keeps refusing a watch may have lost the place where it should resume."""
        self._refusals += problem.status != _TOO_MANY_REQUESTS
        if self._refusals >= MAX_REFUSALS:
            self._refusals = 0
            self._version = ""

    async def _wait(self, problem: Exception) -> None:
        self._counts["failures"] += 1
        self._last_error = str(problem)
        if self._on_problem is not None:
            self._on_problem(f"{self.kind.resource}: {problem}")
        asked = problem.retry_after if isinstance(problem, ApiError) else 0.0
        await asyncio.sleep(self._backoff.next(asked))

    # -- list

    async def _list(self) -> None:
        page = await self._page("")
        version, items = page.version, page.items
        if not version:
            raise BrokenFrameError(f"the list of {self.kind.resource} has no resourceVersion")
        while page.continue_token:
            page = await self._page(page.continue_token)
            items += page.items
        self._counts["lists"] += 1
        await self._tell(self._known.replaced(items))
        self._version = version
        self.synced.set()

    async def _page(self, token: str) -> Page:
        """One page; where the server is only busy, the same page again, so that no work is lost."""
        limit = str(self._page_size) if self._page_size else ""
        query = {**self._selectors, **_present(limit=limit, **{"continue": token})}
        while True:
            try:
                response = await self._transport.request(
                    Request("GET", self._path, query), timeout=LIST_SECONDS
                )
                if response.status == _OK:
                    return self._decoder.page(response.body)
                error = error_of_response(response)
                if error.status not in _RETRY_SAME_WATCH or not token:
                    raise error
                await self._wait(error)
            except TransportError as problem:
                if not token:
                    raise
                await self._wait(problem)

    async def _tell(self, changes: Iterable[Change]) -> None:
        for number, change in enumerate(changes, 1):
            self._tell_one(change)
            if number % TURN == 0:
                await asyncio.sleep(0)

    def _tell_one(self, change: Change) -> None:
        self._counts["changes"] += 1
        if change.type is ChangeType.UNDECODABLE:
            self._counts["undecodable"] += 1
        self._on_change(change)

    # -- watch

    async def _watch(self) -> None:
        """Follows one stream until it ends. Returns when it ended politely."""
        self._counts["watches"] += 1
        loop = asyncio.get_running_loop()
        opened, start = loop.time(), self._version
        try:
            async with self._open() as stream:
                await self._follow(stream)
        except (TransportError, TimeoutError) as problem:
            raise TransportError(str(problem) or "the watch was silent for too long", sent=True) from None
        finally:
            if self._version != start or loop.time() - opened >= HEALTHY_SECONDS:
                self._backoff.reset()
        if self._version == start and loop.time() - opened < HEALTHY_SECONDS:
            raise TransportError(f"the watch of {self.kind.resource} ended at once", sent=True)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Stream]:
        query = {
            **self._selectors,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(self._rng.randint(300, 600)),
        }
        async with asyncio.timeout(OPEN_SECONDS):
            stream = await self._transport.stream(Request("GET", self._path, query))
        try:
            await self._check(stream)
            yield stream
        finally:
            await stream.close()

    async def _check(self, stream: Stream) -> None:
        if stream.status == _OK:
            return
        self._refuse(error_of_body(stream.status, await stream.read(), stream.headers))

    async def _follow(self, stream: Stream) -> None:
        loop = asyncio.get_running_loop()
        armed = loop.time()
        async with (
            asyncio.timeout_at(armed + self._silence) as limit,
            closed_at_end(stream.lines()) as lines,
        ):
            async for line in lines:
                await self._handle(self._decoder.frame(line))
                # Moving the deadline costs more than reading the clock: once a second is enough.
                if loop.time() - armed >= 1.0:
                    armed = loop.time()
                    limit.reschedule(armed + self._silence)

    async def _handle(self, frame: Frame) -> None:
        self._counts["frames"] += 1
        if frame.error is not None:
            self._refuse(frame.error)
        assert frame.seen is not None
        changes = self._changes(frame.type, frame.seen)
        self._version = frame.version or self._version
        self._last_error = ""
        self._refusals = 0
        for change in changes:
            self._tell_one(change)
        if self._counts["frames"] % TURN == 0:
            await asyncio.sleep(0)

    def _refuse(self, error: ApiError) -> NoReturn:
        """Only a busy server, or one that does not know us just now, lets the same watch be tried again."""
        if error.status in _RETRY_SAME_WATCH and not error.is_expired:
            raise error
        raise _ListAgainError(str(error)) from None

    def _changes(self, kind: FrameType, seen: Seen) -> list[Change]:
        if kind is FrameType.BOOKMARK:
            return []
        return self._known.deleted(seen) if kind is FrameType.DELETED else self._known.upserted(seen)


def _present(**query: str) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}
