"""Answers that depend on one row and the pod's signature alone, kept while the row does not change.

A Deployment of thousands of replicas asks the same questions again and again while each decision changes
one row: only that row is asked again. This holds for plugins that declare `DependsOn.ROW`.

Laws: an answer is used only while the row has the revision it was given for; revisions of what-if rows are
negative and never match. Answers belong to one node table and are dropped when another one is shown. A
signature gets its place when it is seen for the second time, so that one-off pods cost nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from pilotage.framework.plugin import DependsOn
from pilotage.state.podinfo import PodInfo
from pilotage.state.view import Int8, Int32, Int64, NodeView, Rows, UInt64

V = TypeVar("V")

NEVER = -2
_VECTOR_METHODS = {"filter": "filter_nodes", "score": "score_nodes"}
_KEPT_SIGNATURES = 128
_SEEN_SIGNATURES = 1024


def is_row_bound(plugin: object, point: str) -> bool:
    """Whether the plugin's answers may be kept: vector form, and it says that rows are all it reads."""
    method = _VECTOR_METHODS.get(point, "")
    return bool(method) and hasattr(plugin, method) and getattr(plugin, "depends_on", None) is DependsOn.ROW


class Verdicts:
    """The leading filters per row: code (0: all pass), index of the first that fails, its reason bits."""

    __slots__ = ("bits", "codes", "origin", "revision")

    def __init__(self, n_rows: int) -> None:
        self.revision: Int64 = np.full(n_rows, NEVER, np.int64)
        self.codes: Int8 = np.zeros(n_rows, np.int8)
        self.origin: Int32 = np.zeros(n_rows, np.int32)
        self.bits: UInt64 = np.zeros(n_rows, np.uint64)


class RawScores:
    """One plugin's scores per row, before normalising."""

    __slots__ = ("revision", "scores")

    def __init__(self, n_rows: int) -> None:
        self.revision: Int64 = np.full(n_rows, NEVER, np.int64)
        self.scores: Int64 = np.zeros(n_rows, np.int64)

    def of(self, view: NodeView, rows: Rows, ask: Callable[[Rows], Int64]) -> Int64:
        """Scores of the rows; `ask` is called with those that changed."""
        stale = stale_rows(self.revision, view, rows)
        if stale.size:
            self.scores[stale] = ask(stale)
            self.revision[stale] = settled(view, stale)
        return self.scores[rows]


def stale_rows(revision: Int64, view: NodeView, rows: Rows) -> Rows:
    """The rows whose answers do not hold any more."""
    stale: Rows = rows[revision[rows] != view.revision[rows]]
    return stale


def settled(view: NodeView, rows: Rows) -> Int64:
    """Revisions under which answers for these rows hold: what-if rows never do."""
    revisions = view.revision[rows]
    return np.where(revisions < 0, NEVER, revisions)


class Answers:
    """Everything kept for one signature and a table of a certain size."""

    __slots__ = ("_raw", "n_rows", "verdicts")

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.verdicts = Verdicts(n_rows)
        self._raw: dict[str, RawScores] = {}

    def raw_scores(self, plugin: str) -> RawScores:
        known = self._raw.get(plugin)
        if known is None:
            known = self._raw[plugin] = RawScores(self.n_rows)
        return known


class RowCache:
    """Signature -> answers, least recently used ones dropped."""

    __slots__ = ("_identity", "_kept", "_seen")

    def __init__(self) -> None:
        self._identity: object = None
        self._kept: OrderedDict[bytes, Answers] = OrderedDict()
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def answers(self, view: NodeView, pod: PodInfo) -> Answers | None:
        """What is kept for pods like this one; None when it is the first of its kind."""
        if view.identity is not self._identity:
            self._identity = view.identity
            self._kept.clear()
        signature = pod.signature
        known = self._kept.get(signature)
        if known is not None and known.n_rows == view.n_rows:
            self._kept.move_to_end(signature)
            return known
        if known is None and signature not in self._seen:
            _remember(self._seen, signature, None, _SEEN_SIGNATURES)
            return None
        return _remember(self._kept, signature, Answers(view.n_rows), _KEPT_SIGNATURES)


def _remember(of: OrderedDict[bytes, V], key: bytes, value: V, limit: int) -> V:
    of[key] = value
    of.move_to_end(key)
    if len(of) > limit:
        of.popitem(last=False)
    return value
