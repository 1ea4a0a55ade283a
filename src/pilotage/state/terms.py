"""Stub of the term index."""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.state.podinfo import PodInfo


class TermIndex:
    def grow(self, n_rows: int) -> None: ...

    def pod_added(self, row: int, info: PodInfo) -> None: ...

    def pod_removed(self, row: int, info: PodInfo) -> None: ...

    def namespace_changed(self, name: str, labels: Mapping[str, str] | None) -> None: ...
