"""Resource names: which ones scheduling counts, and which ones only where a pod asks for them."""

from __future__ import annotations

from functools import lru_cache

NATIVE = ("cpu", "memory", "ephemeral-storage")


@lru_cache(4096)
def is_scalar(resource: str) -> bool:
    """Extended resources, huge pages, attachable volumes: counted in units and scored only when asked for."""
    return "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


@lru_cache(4096)
def is_counted(resource: str) -> bool:
    """Whether a request for it is compared with what nodes offer; `pods` and unknown plain names are not."""
    return resource in NATIVE or is_scalar(resource)


@lru_cache(4096)
def is_extended(resource: str) -> bool:
    """Outside the kubernetes.io domain: what `ignoredResources` may name."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")
