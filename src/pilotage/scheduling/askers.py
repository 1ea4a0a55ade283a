"""Who may be asked while a pod is decided: those who narrow the nodes, and those who rate them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pilotage.state.podinfo import PodInfo


class Screening(NamedTuple):
    """What an asker said: node name -> reason, by whether preemption could help."""

    failed: Mapping[str, str] = {}
    unresolvable: Mapping[str, str] = {}


class Asker(Protocol):
    """Someone outside who narrows the feasible nodes."""

    @property
    def name(self) -> str:
        """Who the pod waits for when it is rejected, as the queue knows it."""

    @property
    def label(self) -> str:
        """How texts name it."""

    @property
    def timeout(self) -> float | None:
        """See `Question`."""

    @property
    def is_ignorable(self) -> bool:
        """Its failure does not fail the pod."""

    def request(self, pod: PodInfo, node_names: Sequence[str]) -> Any | None:
        """What to ask; None when it does not care about this pod."""

    def screen(self, response: Any, node_names: Sequence[str]) -> Screening:
        """Reads an answer about these nodes. Raises ValueError for one that makes no sense."""


class Rater(Protocol):
    """Someone outside who adds to the scores of the feasible nodes. Its failures change nothing."""

    @property
    def label(self) -> str: ...

    @property
    def timeout(self) -> float | None: ...

    def request(self, pod: PodInfo, node_names: Sequence[str]) -> Any | None:
        """What to ask; None when it does not care about this pod."""

    def rate(self, response: Any) -> Mapping[str, int]:
        """Node name -> what is added to its total. Raises ValueError for nonsense."""
