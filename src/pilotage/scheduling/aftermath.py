"""What follows when no node can take a pod: PostFilter has its say, and the text is complete.

Pure: nothing is removed, written or nominated here.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.framework.asking import Asking, with_nobody_to_ask
from pilotage.framework.plugin import PostFilterResult, Preemption
from pilotage.framework.profile import Profile
from pilotage.framework.status import Status
from pilotage.scheduling.verdict import Decision, with_post_filter
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import NodeView


@dataclass(frozen=True, slots=True)
class Aftermath:
    """`nominated`: None leaves it as it is, "" clears it. `post_filter`: None where it did not run."""

    message: str
    nominated: str | None = None
    preemption: Preemption | None = None
    post_filter: Status | None = None


def after_rejection(profile: Profile, view: NodeView, pod: PodInfo, decision: Decision) -> Aftermath:
    """As `asking_after_rejection` where nobody outside can be asked."""
    return with_nobody_to_ask(asking_after_rejection(profile, view, pod, decision))


def asking_after_rejection(
    profile: Profile, view: NodeView, pod: PodInfo, decision: Decision
) -> Asking[Aftermath]:
    """The complete text of a decision that found no node, and whom PostFilter wants removed.

    An error is no rejection: PostFilter does not run, and neither does it when there are no nodes.
    """
    if not decision.status.is_rejection:
        return Aftermath(decision.message, "")
    if decision.failures is None or not profile.post_filter:
        return Aftermath(decision.message, "" if decision.clears_nomination else None)
    result: PostFilterResult = yield from profile.post_filtering(decision.cycle, pod, view, decision.failures)
    message = with_post_filter(decision.message, result.status)
    return Aftermath(message, result.nominated_node, result.preemption, result.status)
