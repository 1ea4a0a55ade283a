"""Figures that every component of a cluster shows: build, feature gates, health checks, leadership."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.metrics_core import Metric

from pilotage.framework.gates import GATES
from pilotage.runtime.figures import Counter, Figures, gauges

_NAME_TYPE = ("name", "type")


class ProcessFigures(Figures):
    """`gates`: the values in force. `leading`: by lease name; None without leader election."""

    def __init__(self, version: str, gates: Mapping[str, bool]) -> None:
        self._version = version
        self._gates = dict(gates)
        self._last: dict[tuple[str, ...], float] = {}
        self.leading: Callable[[], Mapping[str, bool]] | None = None
        self.checks = Counter(
            "kubernetes_healthchecks", "Health checks that were asked for.", *_NAME_TYPE, "status"
        )

    def checked(self, name: str, page: str, is_good: bool) -> None:
        """`page`: healthz, livez or readyz."""
        self.checks.add(name, page, "success" if is_good else "error")
        self._last[(name, page)] = float(is_good)

    def gauges(self) -> Iterator[Metric]:
        build = {(self._version,): 1.0}
        yield gauges("kubernetes_build_info", "Always 1.", ("git_version",), build)
        enabled = {(gate.name, gate.stage.value): float(self._is_on(gate.name)) for gate in GATES.values()}
        text = "1 where a feature gate is on."
        yield gauges("kubernetes_feature_enabled", text, ("name", "stage"), enabled)
        yield gauges("kubernetes_healthcheck", "1 where a check passed last.", _NAME_TYPE, self._last)
        if self.leading is not None:
            masters = {(name,): float(is_leader) for name, is_leader in self.leading().items()}
            text = "1 while this process holds the lease."
            yield gauges("leader_election_master_status", text, ("name",), masters)

    def _is_on(self, name: str) -> bool:
        return self._gates.get(name, GATES[name].default)
