"""HTTP extenders played in process, under virtual time: what a test says is what they answer.

fast = Extender(filter=lambda args: {"NodeNames": ["n1"]})
Harness(settings={"extenders": [...]}, extenders={"http://fast": fast})
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import Any

import msgspec

from pilotage.client.posting import PostError
from pilotage.framework.settings import ExtenderSettings
from pilotage.runtime.extenders import OpenPoster, Poster

Tree = dict[str, Any]


class Extender:
    """Answers verbs by functions from the decoded request to a tree, to bytes (sent as they are), to a number
    (an HTTP status), or to None (the connection breaks); they may be coroutines. `delay`: virtual seconds
    before each answer.
    """

    def __init__(self, *, delay: float = 0.0, **verbs: Callable[[Tree], Any]) -> None:
        self.delay = delay
        self.calls: list[tuple[str, Tree]] = []
        self.under_way = 0
        self.most_under_way = 0
        self._verbs = verbs

    def asked(self, verb: str) -> list[Tree]:
        return [args for called, args in self.calls if called == verb]

    async def post(self, url: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        verb, args = url.rpartition("/")[2], msgspec.json.decode(body)
        self.calls.append((verb, args))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            async with asyncio.timeout(timeout):
                await asyncio.sleep(self.delay)
        except TimeoutError:
            raise PostError(f"no answer within {timeout:g} s") from None
        finally:
            self.under_way -= 1
        answer = self._verbs.get(verb)
        said = answer(args) if answer is not None else None
        return _response(await said if isawaitable(said) else said)

    async def close(self) -> None:
        """Nothing to close."""


def _response(answer: Any) -> tuple[int, bytes]:
    if answer is None:
        raise PostError("connection refused")
    if isinstance(answer, int):
        return answer, b""
    return 200, answer if isinstance(answer, bytes) else msgspec.json.encode(answer)


def opener(extenders: Mapping[str, Extender]) -> OpenPoster:
    """Where nobody plays an extender, nobody listens."""

    def open_poster(settings: ExtenderSettings) -> Poster:
        return extenders.get(settings.url_prefix) or Extender()

    return open_poster
