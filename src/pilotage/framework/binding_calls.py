"""A bind that somebody outside makes: what is left to us is to look whether it happened."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.framework.calls import Call


@dataclass(frozen=True, slots=True)
class ConfirmBinding(Call):
    """Reads the pod: done when it is on `node`. `failure`: why whoever was to bind it says that it is not.

    Without a failure it is read again for a while; with one, a pod that is not bound fails at once.
    """

    node: str
    failure: str = ""

    @property
    def call_type(self) -> str:
        return "pod_binding_check"
