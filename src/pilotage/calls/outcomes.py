"""Carries the verdict on an answer out on its slot: ended, again later, read first, next request.

Bounds on tries and age are applied here, for all types alike. A verification has none: until somebody
knows whether the write took effect, nothing else may be decided about the object.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.api.meta import KubeObject
from pilotage.calls.admission import Ended, failure, requeue
from pilotage.calls.guard import CallTypeRaisedError
from pilotage.calls.memory import SentMemory
from pilotage.calls.slots import Slot, Wish, is_newer
from pilotage.calls.types import Phase
from pilotage.calls.verdicts import Done, Fail, Next, Rebase, Resend, Retry, Skip, Verdict, Verify
from pilotage.framework.calls import CallResult, Outcome

FOLDED = Outcome(CallResult.SKIPPED, "folded into what was sent")


@dataclass(slots=True)
class Conclusion:
    """One answer, about to change its slot."""

    slot: Slot
    wish: Wish
    now: float
    memory: SentMemory

    def apply(self, verdict: Verdict) -> Ended:
        match verdict:
            case Done(object=found):
                return self._done(found)
            case Skip(why=why, status=status, reason=reason):
                return self._end(Outcome(CallResult.SKIPPED, why, status, reason))
            case Fail(error=error, status=status, reason=reason):
                return self._end(Outcome(CallResult.FAILED, error, status, reason))
        if self.wish.cancelled and not self._must_be_known(verdict):
            if isinstance(verdict, Rebase):  # what was read serves whoever comes next
                self.slot.learn(verdict.object)
            return self._end(Outcome(CallResult.CANCELLED, self.wish.cancelled))
        return self._go_on(verdict)

    def _must_be_known(self, verdict: Verdict) -> bool:
        """Whether a write of unknown effect has others waiting behind it: they must not be sent blindly."""
        is_reading = isinstance(verdict, Retry) and self.wish.phase is Phase.VERIFY
        return bool(self.slot.waiting) and (isinstance(verdict, Verify) or is_reading)

    def _go_on(self, verdict: Verdict) -> Ended:
        wish = self.wish
        match verdict:
            case Verify():
                wish.unsure, wish.phase, wish.not_before, wish.reads = True, Phase.VERIFY, self.now, 0
            case Next():
                wish.step, wish.not_before = wish.step + 1, self.now
            case Rebase():
                return self._rebase(verdict)
            case Resend(call=call, error=error):
                wish.take(call)
                wish.restart()
                return self._again(Retry(error))
            case Retry() if wish.phase is Phase.VERIFY:
                wish.reads += 1
                wish.not_before = self.now + self._delay(verdict, wish.reads)
            case Retry():
                return self._again(verdict)
        return []

    def _done(self, found: KubeObject | None) -> Ended:
        """Written: whoever waits behind it is measured against what was sent."""
        wish, slot = self.wish, self.slot
        ended = self._end(Outcome(CallResult.DONE))
        if found is None:
            slot.base = None  # the version that we know was overtaken by our own write
        slot.learn(found)
        sent = wish.kind.remember(wish.call, self.now)
        later = next((one for one in slot.waiting if one.kind.name == wish.kind.name), None)
        if later is not None:
            return ended + self._measure(later, sent)
        if wish.kind.linger and not wish.is_last:
            self.memory.store(slot.key, sent, self.now + wish.kind.linger)
        return ended

    def _measure(self, later: Wish, sent: object) -> Ended:
        try:
            rest = later.kind.after(later.call, sent)
            if not isinstance(rest, Outcome):
                later.take(rest)
                if later.kind.earliest(rest) <= self.now:
                    return []
                self.memory.fold(self.slot.key, later, rest, self.now)
                rest = FOLDED
        except CallTypeRaisedError as error:
            rest = failure(error)
        self.slot.waiting.remove(later)
        return [(later, rest)]

    def _rebase(self, verdict: Rebase) -> Ended:
        wish, slot = self.wish, self.slot
        if verdict.object is None and wish.tries - wish.put_off >= wish.kind.retry.tries:
            return self._end(Outcome(CallResult.FAILED, verdict.error, verdict.status, verdict.reason))
        wish.not_before = self.now
        has_newer = slot.learn(verdict.object) or _was_overtaken(slot)
        if has_newer:
            return requeue(slot, wish)
        wish.phase, wish.step = Phase.READ, 0
        return []

    def _again(self, verdict: Retry) -> Ended:
        wish, policy = self.wish, self.wish.kind.retry
        wish.not_before = self.now + self._delay(verdict, wish.tries)
        # Waiting for its turn does not count: a call may always be sent, and sent again.
        begun = self.now if wish.first_sent is None else wish.first_sent
        is_too_old = wish.not_before - begun > policy.max_age
        # 429 says "later", not "no": such tries are bounded by the age alone.
        wish.put_off += verdict.status == 429
        if wish.tries - wish.put_off >= policy.tries or is_too_old:
            return self._end(Outcome(CallResult.FAILED, verdict.error, verdict.status, verdict.reason))
        return [] if wish.holds else requeue(self.slot, wish)

    def _delay(self, verdict: Retry, tries: int) -> float:
        """As long as the server asked for; where it named no time, or none to wait, the type's backoff."""
        return verdict.after or self.wish.kind.retry.delay(tries)

    def _end(self, outcome: Outcome) -> Ended:
        self.slot.running = None
        return [(self.wish, outcome)]


def _was_overtaken(slot: Slot) -> bool:
    """Whether informers brought a newer object since the request was made."""
    if slot.base is None or slot.sent_base is None:
        return slot.base is not None
    return is_newer(slot.base, slot.sent_base)
