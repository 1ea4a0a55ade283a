"""The scheduler's settings for a storm: kube-scheduler's defaults under the run's own scheduler name."""

from __future__ import annotations

from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.frontends.bench.objects import SCHEDULER
from pilotage.frontends.bench.scenario import Storm
from pilotage.plugins import default_registry
from pilotage.runtime.config import load_settings
from pilotage.runtime.config_model import API_VERSION, KIND


def settings_for(storm: Storm, registry: Registry | None = None) -> Settings:
    """Raises ConfigError for a limit that no configuration may have."""
    tree = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "clientConnection": {"qps": storm.qps, "burst": storm.burst},
        "profiles": [{"schedulerName": SCHEDULER}],
    }
    return load_settings(tree, registry or default_registry(), storm.gates)
