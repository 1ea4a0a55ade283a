"""Which taints a pod tolerates. Unknown operators tolerate nothing (Gt and Lt are an alpha, off)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pilotage.api.nodes import Taint
from pilotage.api.pods import Toleration

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
HARD_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether this toleration covers this taint.

    An empty effect covers all effects. An empty key covers all keys, and only operator Exists allows it;
    with another operator it equals an empty key only.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.key == taint.key and toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration] | None) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations or ())


def find_untolerated(
    taints: Iterable[Taint] | None,
    tolerations: Sequence[Toleration] | None,
    effects: Collection[str] = HARD_EFFECTS,
) -> Taint | None:
    """The first taint with one of `effects` that nothing tolerates."""
    for taint in taints or ():
        if taint.effect in effects and not is_tolerated(taint, tolerations):
            return taint
    return None
