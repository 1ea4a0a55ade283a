"""Zone and region labels of volumes and nodes, the deprecated ones included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.api.others import PersistentVolume

_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
KEYS: Final = (_BETA_ZONE, _BETA_REGION, _ZONE, _REGION)
STABLE: Final[Mapping[str, str]] = {_BETA_ZONE: _ZONE, _BETA_REGION: _REGION}
_SEPARATOR: Final = "__"


def topology_labels(volume: PersistentVolume) -> dict[str, frozenset[str]]:
    """Allowed values by key. A value that cannot be read constrains nothing."""
    labels = volume.metadata.labels or {}
    found = {key: _values(labels[key]) for key in KEYS if key in labels}
    return {key: values for key, values in found.items() if values}


def _values(text: str) -> frozenset[str]:
    """The alternatives in a label; none where one of them is empty."""
    values = [value.strip() for value in text.split(_SEPARATOR)]
    return frozenset(values) if all(values) else frozenset()
