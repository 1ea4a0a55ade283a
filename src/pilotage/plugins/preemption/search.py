"""Which nodes are tried, in what order, and when enough candidates are known.

Laws: only nodes that a filter rejected in a way that removals can cure; a random node is the first; the
search ends when as many candidates as wanted are known and one of them violates no budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from pilotage.framework.trials import entitled
from pilotage.plugins.preemption.dry_run import Candidate, DryRun
from pilotage.plugins.preemption.joint import rows_worth_trying, victims_on_all
from pilotage.plugins.preemption.single import victims_on
from pilotage.state.view import Rows

_SMALLEST_BATCH = 128


def find_candidates(run: DryRun, rows: Rows, wanted: int) -> Sequence[Candidate]:
    """Candidates among `rows`, which are tried in order. Raises PluginFailedError."""
    found: list[Candidate] = []
    has_allowed = False
    for candidate in _candidates(run, rows, wanted):
        found.append(candidate)
        has_allowed |= not candidate.violations
        if has_allowed and len(found) >= wanted:
            break
    return found


def _candidates(run: DryRun, rows: Rows, wanted: int) -> Iterator[Candidate]:
    """Lazily, batch by batch."""
    try_batch = victims_on_all if run.trials.is_row_bound(run.cycle) else _one_by_one
    size = max(wanted, _SMALLEST_BATCH)
    for start in range(0, rows.size, size):
        yield from try_batch(run, rows[start : start + size])


def _one_by_one(run: DryRun, rows: Rows) -> Iterable[Candidate]:
    """Rows that cannot help by their own numbers are left out at once.

    Those with nominated pods are tried in any case: which reason is theirs depends on these pods.
    """
    names = map(run.view.name, rows.tolist())
    is_beside = np.array([bool(entitled(run.nominations, name, run.pod)) for name in names], np.bool_)
    worth = rows_worth_trying(run, rows[~is_beside])
    for row in rows[is_beside | np.isin(rows, worth)].tolist():
        candidate = victims_on(run, row)
        if candidate is not None:
            yield candidate
