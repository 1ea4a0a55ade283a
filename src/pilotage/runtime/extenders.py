"""Carries questions to HTTP extenders: who is asked, how long, how many at once.

Laws
- Every query ends, with an answer or with an `ExtenderError` that names what went wrong.
- `httpTimeout` counts from sending. One extender is asked `CONCURRENT` things at a time at most, and as many
  binds beside them; what comes on top waits its turn here, so one that is slow holds up those who need it
  and nobody else, and decisions never hold up a bind.
- A failing extender is logged now and then, not at every call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pilotage.client.posting import JsonPoster, PostError, PostTls
from pilotage.client.tls import Tls
from pilotage.framework.settings import ExtenderSettings, ExtenderTls
from pilotage.runtime.extender_wire import ExtenderAnswerError, decode, encode
from pilotage.runtime.raw_objects import RawObjects
from pilotage.runtime.steps import Asker
from pilotage.scheduling.extenders import BindQuery, ExtenderQuery, label

logger = logging.getLogger(__name__)

CONCURRENT = 16
QUIET_SECONDS = 30.0
_OK = 200


class ExtenderError(Exception):
    """No answer that can be used."""


class Poster(Protocol):
    """The way to one extender."""

    async def post(self, url: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        """Status and body. Raises PostError."""

    async def close(self) -> None: ...


OpenPoster = Callable[[ExtenderSettings], Poster]


class Extenders:
    """All extenders of one scheduler. `time`: seconds that only grow."""

    def __init__(
        self,
        settings: Sequence[ExtenderSettings],
        raw: RawObjects,
        time: Callable[[], float],
        open_poster: OpenPoster | None = None,
    ) -> None:
        opener = open_poster or http_poster
        self._raw = raw
        self._time = time
        self._posters = {one: opener(one) for one in settings}
        self._turns = {
            (one, is_bind): asyncio.Semaphore(CONCURRENT) for one in settings for is_bind in (False, True)
        }
        self._logged: dict[str, float] = {}  # by what failed: when it was said last
        self.under_way: dict[str, int] = {}  # by verb

    def before(self, other: Asker | None) -> Asker:
        """Asks extenders what is theirs, and `other` the rest."""

        async def ask(request: Any) -> Any:
            if isinstance(request, ExtenderQuery):
                return await self.ask(request)
            if other is None:
                raise LookupError("nobody is configured to answer")
            return await other(request)

        return ask

    async def ask(self, query: ExtenderQuery) -> Any:
        """Raises ExtenderError."""
        extender = query.extender
        async with self._turns[extender, isinstance(query, BindQuery)]:
            self.under_way[query.verb] = self.under_way.get(query.verb, 0) + 1
            try:
                return await self._ask(query)
            except (PostError, ExtenderAnswerError) as problem:
                self._complain(label(extender, query.verb), str(problem))
                raise ExtenderError(str(problem)) from None
            finally:
                self.under_way[query.verb] -= 1

    async def _ask(self, query: ExtenderQuery) -> Any:
        extender = query.extender
        url = f"{extender.url_prefix.rstrip('/')}/{query.verb}"
        body = encode(query, self._raw)
        status, answer = await self._posters[extender].post(url, body, extender.http_timeout)
        if status != _OK:
            raise PostError(f"it answered with HTTP status {status}")
        return decode(query, answer)

    def _complain(self, who: str, problem: str) -> None:
        now = self._time()
        is_news = now - self._logged.get(who, -QUIET_SECONDS) >= QUIET_SECONDS
        if is_news:
            self._logged[who] = now
        logger.log(logging.WARNING if is_news else logging.DEBUG, "%s: %s", who, problem)

    async def close(self) -> None:
        for poster in self._posters.values():
            await poster.close()


def http_poster(extender: ExtenderSettings) -> JsonPoster:
    """Real HTTP. As with kube-scheduler, enableHTTPS without a CA means that nobody is verified."""
    tls = extender.tls or ExtenderTls()
    has_authority = bool(tls.ca_data or tls.ca_file)
    is_blind = tls.insecure or (extender.enable_https and not has_authority)
    if is_blind and extender.url_prefix.startswith("https:"):
        logger.warning(
            'extender "%s": its certificate is not verified (no caFile or caData)', extender.url_prefix
        )
    has_data = bool(tls.cert_data)
    return JsonPoster(
        PostTls(
            Tls(
                ca_file="" if tls.ca_data else tls.ca_file,
                ca_data=tls.ca_data.decode("ascii", "replace"),
                cert_file="" if has_data else tls.cert_file,
                key_file="" if has_data else tls.key_file,
                verify=not is_blind,
                server_name=tls.server_name,
            ),
            tls.cert_data,
            tls.key_data,
        ),
        max_connections=2 * CONCURRENT,
    )
