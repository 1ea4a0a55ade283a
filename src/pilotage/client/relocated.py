"""A kubeconfig's credentials for a server at another address (`--master`)."""

from __future__ import annotations

from dataclasses import replace

from pilotage.client.credentials import Access, Credentials


class RelocatedCredentials:
    """`inner`'s, but for `server`."""

    def __init__(self, inner: Credentials, server: str) -> None:
        self._inner = inner
        self.server = server

    @property
    def namespace(self) -> str:
        return self._inner.namespace

    async def access(self) -> Access:
        return replace(await self._inner.access(), server=self.server)

    async def refresh(self, stale: Access) -> Access:
        fresh = await self._inner.refresh(replace(stale, server=self._inner.server))
        return replace(fresh, server=self.server)
