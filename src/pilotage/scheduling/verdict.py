"""What a cycle decided, and the text a user reads when it found no node."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pilotage.framework.cycle import CycleState
from pilotage.framework.failures import NodeFailures
from pilotage.framework.scoring import Scores
from pilotage.framework.status import SUCCESS, Code, Status
from pilotage.state.view import Rows

NO_NODES = "no nodes available to schedule pods"


def _no_rows() -> Rows:
    return np.zeros(0, np.intp)


@dataclass(slots=True)
class Decision:
    """One pod's cycle up to the choice of a node.

    Chosen: `node` and `row`, the feasible `rows`, and `scores` aligned with them (None when a single node was
    feasible or the nominated one was taken: then nothing is scored).
    Not chosen: `status` and `message`; `failures` for PostFilter (None: PostFilter must not run).
    """

    cycle: CycleState
    status: Status = SUCCESS
    node: str = ""
    row: int = -1
    rows: Rows = field(default_factory=_no_rows)
    scores: Scores | None = None
    failures: NodeFailures | None = None
    message: str = ""
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    evaluated: int = 0  # nodes filtered; the search index moves by it
    clears_nomination: bool = False
    remarks: tuple[str, ...] = ()  # for the log

    @property
    def code(self) -> Code:
        return self.status.code

    @property
    def is_scheduled(self) -> bool:
        return bool(self.node)


def pre_filter_message(n_nodes: int, status: Status) -> str:
    return f"0/{n_nodes} nodes are available: {status.message}."


def with_post_filter(message: str, status: Status) -> str:
    """The message with what PostFilter had to say; nothing is added when it said nothing."""
    return f"{message} {status.message}" if status.reasons else message
