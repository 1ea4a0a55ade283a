"""ResourceClaim (resource.k8s.io/v1), as far as decisions and writes about reservations read it."""

from __future__ import annotations

from typing import Any

from pilotage.api.meta import KubeObject, View


class ClaimConsumer(View, frozen=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ClaimStatus(View, frozen=True):
    allocation: dict[str, Any] | None = None
    reserved_for: list[ClaimConsumer] | None = None


class ResourceClaim(KubeObject, frozen=True):
    status: ClaimStatus = ClaimStatus()
