"""Part 3 of the comparison in test_decision_reference.py."""

from __future__ import annotations

import pytest

from reference.decision_property import LARGE, LARGE_CASES, SMALL, SMALL_CASES, decision_property

test_small_clusters = pytest.mark.slow(decision_property(3, SMALL, SMALL_CASES))
test_large_clusters = pytest.mark.slow(decision_property(3, LARGE, LARGE_CASES))
