"""Interned sets of declared features: many nodes share few sets, so a pod's needs are compared with sets.

Laws: a set gets its id once; id 0 is the empty set.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pilotage.state.view import Bool


class FeatureSets:
    """Sets of feature names by id."""

    __slots__ = ("_ids", "_sets")

    def __init__(self) -> None:
        self._sets: list[frozenset[str]] = [frozenset()]
        self._ids: dict[frozenset[str], int] = {frozenset(): 0}

    def intern(self, features: Iterable[str]) -> int:
        key = frozenset(features)
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self._sets)
            self._sets.append(key)
        return found

    def __getitem__(self, feature_set: int) -> frozenset[str]:
        return self._sets[feature_set]

    def holding(self, needed: frozenset[str]) -> Bool:
        """[sets] whether a set holds all of `needed`."""
        return np.array([needed <= declared for declared in self._sets], np.bool_)
