"""Defaults for call types: a whole-object wish where the newest wins and failures are retried."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic

from pilotage.api.meta import KubeObject
from pilotage.api.wire import Request, Response
from pilotage.calls.answers import failed, is_retryable, is_success, retry, status_of
from pilotage.calls.types import C, Lane, NoAnswer, Phase, Relevance, Result, RetryPolicy, Sent
from pilotage.calls.verdicts import Done, Rebase, Skip, Verdict
from pilotage.framework.calls import Call, ObjectKey, Outcome


class BaseCallType(Generic[C]):
    """A subclass gives `name` and `requests`, and whatever else differs. See `types.CallType`."""

    name: str = ""
    relevance: int = Relevance.STATUS
    retry: RetryPolicy = RetryPolicy()
    linger: float = 0.0

    def prepare(self, call: C, now: float) -> C:
        return call

    def slot(self, call: C) -> Hashable:
        return call.key

    def lane(self, call: C) -> Lane:
        return Lane.STATUS

    def waits_for(self, call: C) -> ObjectKey | None:
        return None

    def merge(self, old: C, new: C) -> C:
        return new

    def remainder(self, call: C, by: Call) -> C | None:
        return None

    def after(self, call: C, sent: C) -> C | Outcome:
        return call

    def earliest(self, call: C) -> float:
        return 0.0

    def remember(self, call: C, now: float) -> C:
        return call

    def rebase(self, call: C, newest: KubeObject) -> C | Outcome:
        return call

    def is_no_op(self, call: C, base: KubeObject) -> bool:
        return False

    def apply(self, call: C, base: KubeObject) -> KubeObject:
        return base

    def reads_first(self, call: C) -> bool:
        return False

    def read(self, call: C) -> Request:
        raise NotImplementedError(f"call type {self.name!r} does not say how its object is read")

    def requests(self, call: C, base: KubeObject | None, now: float) -> Sequence[Request]:
        raise NotImplementedError(f"call type {self.name!r} has no requests")

    def decode(self, body: bytes) -> KubeObject | None:
        """The object in an answer; None where the body holds none (or one that nobody needs)."""
        return None

    def on_result(self, sent: Sent[C], result: Result) -> Verdict:
        if isinstance(result, NoAnswer):
            return retry(result)
        if sent.phase is Phase.SEND:
            return self.on_sent(sent, result)
        return self.on_read(sent, result)

    def on_sent(self, sent: Sent[C], response: Response) -> Verdict:
        if is_success(response):
            return Done(self.decode(response.body))
        if response.status == 409:
            return self.on_conflict(sent, response)
        return self.on_error(sent, response)

    def on_conflict(self, sent: Sent[C], response: Response) -> Verdict:
        """Policy for 409: give up and report, unless a type knows better."""
        return failed(response)

    def on_error(self, sent: Sent[C], response: Response) -> Verdict:
        return retry(response) if is_retryable(response.status) else failed(response)

    def on_read(self, sent: Sent[C], response: Response) -> Verdict:
        """The object was read in order to write on top of it."""
        if response.status == 404:
            return Skip("the object is gone", 404, "NotFound")
        if not is_success(response):
            return self.on_error(sent, response)
        found = self.decode(response.body)
        if found is None:
            return retry(response)
        if sent.call.key.uid not in ("", found.metadata.uid):
            return Skip("the object was replaced by another of its name", 404, "NotFound")
        return Rebase(status_of(response).message, found)
