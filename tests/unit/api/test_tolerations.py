"""Tolerations against taints."""

from __future__ import annotations

import pytest

from pilotage.api.nodes import Taint
from pilotage.api.pods import Toleration
from pilotage.api.tolerations import find_untolerated, is_tolerated, tolerates

TAINT = Taint(key="k", value="v", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="k", operator="Equal", value="v", effect="NoSchedule"), True),
        (Toleration(key="k", value="v", effect="NoSchedule"), True),
        (Toleration(key="k", operator="", value="v"), True),
        (Toleration(key="k", value="other"), False),
        (Toleration(key="k"), False),
        (Toleration(key="other", value="v"), False),
        (Toleration(key="k", value="v", effect="NoExecute"), False),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(key="k", operator="Exists", effect="NoSchedule"), True),
        (Toleration(key="k", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), True),
        (Toleration(operator="Exists", effect="PreferNoSchedule"), False),
        (Toleration(key="k", operator="Gt", value="1"), False),
        (Toleration(key="k", operator="Lt", value="1"), False),
        (Toleration(key="k", operator="exists"), False),
    ],
)
def test_tolerates(toleration: Toleration, expected: bool) -> None:
    assert tolerates(toleration, TAINT) is expected


def test_an_empty_value_equals_a_taint_without_value() -> None:
    assert tolerates(Toleration(key="k"), Taint(key="k", effect="NoExecute"))


def test_first_untolerated_taint_of_the_effects_asked_for() -> None:
    soft = Taint(key="soft", effect="PreferNoSchedule")
    hard = Taint(key="hard", effect="NoExecute")
    assert find_untolerated([soft, TAINT, hard], None) is TAINT
    assert find_untolerated([soft, TAINT, hard], [Toleration(key="k", operator="Exists")]) is hard
    assert find_untolerated([soft], None) is None
    assert find_untolerated([soft, hard], None, ("PreferNoSchedule",)) is soft
    assert find_untolerated(None, None) is None
    assert is_tolerated(hard, [Toleration(operator="Exists")])
    assert not is_tolerated(hard, None)
