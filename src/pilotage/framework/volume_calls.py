"""Calls on storage: reserve a volume for a claim, and say for which node a claim is to be provisioned."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.framework.calls import Call, ObjectKey


@dataclass(frozen=True, slots=True)
class BindVolume(Call):
    """Sets the claimRef of the PersistentVolume `key` names. A volume that has another one is not ours."""

    claim: ObjectKey

    @property
    def call_type(self) -> str:
        return "volume_binding"


@dataclass(frozen=True, slots=True)
class SelectNode(Call):
    """Annotates the claim `key` names with the node it is to be provisioned for.

    `replaces`: what the annotation said when that was decided; something third is somebody else's decision.
    """

    node: str
    replaces: str = ""

    @property
    def call_type(self) -> str:
        return "claim_node_selection"
