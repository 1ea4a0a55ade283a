"""The call on ResourceClaims: devices allocated, consumers noted and struck off, devices given back."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.framework.calls import Call, ObjectKey


@dataclass(frozen=True, slots=True)
class ChangeClaim(Call):
    """Changes the status of the ResourceClaim `key` names.

    `allocation`: the AllocationResult as JSON, b"" to give the devices back (once nobody is left to use
    them), None to leave it: then the claim must still be allocated when consumers are added.
    `reserve`: pods to put into reservedFor; `release`: UIDs to take out of it.
    """

    reserve: tuple[ObjectKey, ...] = ()
    release: frozenset[str] = frozenset()
    allocation: bytes | None = None

    @property
    def call_type(self) -> str:
        return "resource_claim"
