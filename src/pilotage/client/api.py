"""The API by kinds and dicts, for everybody who is not the scheduler's hot path.

Controllers, kubelets, people's commands and tests read and write whole objects; the scheduler itself
uses typed views and its call queue. One method per verb; a refusal is an `ApiError`, no answer is a
`TransportError`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from pilotage.api.kinds import Kind
from pilotage.api.wire import Request, Response
from pilotage.client.errors import ApiError, error_of_body, error_of_response, error_of_status
from pilotage.client.lines import closed_at_end
from pilotage.client.transport import Transport, TransportError

__all__ = ["ApiClient", "ApiError", "Json", "PatchType", "TransportError"]

Json = dict[str, Any]
PAGE_SIZE = 500
_OK, _MULTIPLE_CHOICES = 200, 300


class PatchType(StrEnum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class ApiClient:
    """`namespace` "" means all namespaces for list and watch, and is right for cluster-scoped kinds."""

    def __init__(
        self, transport: Transport, *, field_manager: str = "pilotage", timeout: float = 30.0
    ) -> None:
        self.transport = transport
        self._manager = field_manager
        self._timeout = timeout

    async def get(self, kind: Kind, name: str, namespace: str = "", *, subresource: str = "") -> Json:
        return await self._json(Request("GET", kind.object_path(namespace, name, subresource)))

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE_SIZE,
    ) -> Json:
        """The whole List object, all pages in one; `limit` is the size of a page."""
        query = _query(labelSelector=label_selector, fieldSelector=field_selector, limit=limit)
        path = kind.collection_path(namespace)
        whole = await self._json(Request("GET", path, query))
        items = whole.get("items") or []
        token = (whole.get("metadata") or {}).get("continue")
        while token:
            page = await self._json(Request("GET", path, {**query, "continue": token}))
            items += page.get("items") or []
            token = (page.get("metadata") or {}).get("continue")
        metadata = {k: v for k, v in (whole.get("metadata") or {}).items() if k == "resourceVersion"}
        return {**whole, "metadata": metadata, "items": items}

    async def create(
        self,
        kind: Kind,
        body: Mapping[str, Any],
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Json:
        """Creates; with `name` and `subresource` posts to a subresource (binding, eviction)."""
        if subresource:
            path = kind.object_path(namespace, name, subresource)
            document = dict(body)
        else:
            path = kind.collection_path(namespace or _meta(body, "namespace"))
            document = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        return await self._json(_write("POST", path, document, self._common(dry_run)))

    async def update(
        self,
        kind: Kind,
        body: Mapping[str, Any],
        namespace: str = "",
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Json:
        """Replaces the object that the body names; its resourceVersion, if any, is a precondition."""
        path = kind.object_path(namespace or _meta(body, "namespace"), _meta(body, "name"), subresource)
        document = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        return await self._json(_write("PUT", path, document, self._common(dry_run)))

    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Mapping[str, Any] | Sequence[Any],
        namespace: str = "",
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Json:
        query = self._common(dry_run)
        if field_manager:
            query["fieldManager"] = field_manager
        if patch_type is PatchType.APPLY and force:
            query["force"] = "true"
        path = kind.object_path(namespace, name, subresource)
        return await self._json(_write("PATCH", path, body, query, patch_type.value))

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        grace_seconds: int | None = None,
        propagation: str = "",
        uid: str = "",
        resource_version: str = "",
    ) -> Json:
        """`uid` and `resource_version` are preconditions. Answers with the object or a Status."""
        options = _delete_options(grace_seconds, propagation, uid, resource_version)
        return await self._json(_write("DELETE", kind.object_path(namespace, name), options, {}))

    async def delete_collection(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        grace_seconds: int | None = None,
    ) -> Json:
        query = _query(labelSelector=label_selector, fieldSelector=field_selector)
        options = _delete_options(grace_seconds, "", "", "")
        return await self._json(_write("DELETE", kind.collection_path(namespace), options, query))

    async def watch(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 0,
        bookmarks: bool = False,
    ) -> AsyncIterator[tuple[str, Json]]:
        """(type, object) until the server ends the stream; a Reflector is what goes on for ever.

        An ERROR event is raised as ApiError.
        """
        query = _query(
            watch="true",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            timeoutSeconds=timeout_seconds,
            allowWatchBookmarks="true" if bookmarks else "",
        )
        stream = await self.transport.stream(Request("GET", kind.collection_path(namespace), query))
        try:
            if stream.status != _OK:
                raise error_of_body(stream.status, await stream.read(), stream.headers)
            async with closed_at_end(stream.lines()) as lines:
                async for line in lines:
                    event = msgspec.json.decode(line, type=Json)
                    if event["type"] == "ERROR":
                        raise error_of_status(event["object"])
                    yield event["type"], event["object"]
        finally:
            await stream.close()

    async def raw(self, request: Request) -> Response:
        """For paths that are no kind (/version, /healthz, Tables). Raises ApiError on a refusal."""
        response = await self.transport.request(request, timeout=self._timeout)
        if not _OK <= response.status < _MULTIPLE_CHOICES:
            raise error_of_response(response)
        return response

    async def _json(self, request: Request) -> Json:
        response = await self.raw(request)
        try:
            document: Json = msgspec.json.decode(response.body, type=Json)
        except msgspec.MsgspecError as problem:
            text = f"{request.method} {request.path}: the answer is not a JSON object: {problem}"
            raise ApiError(response.status, "", text) from None
        return document

    def _common(self, dry_run: bool) -> dict[str, str]:
        return _query(fieldManager=self._manager, dryRun="All" if dry_run else "")


def _query(**values: str | int) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value}


def _meta(body: Mapping[str, Any], field: str) -> str:
    return str((body.get("metadata") or {}).get(field) or "")


def _write(
    method: str, path: str, body: object, query: Mapping[str, str], content_type: str = "application/json"
) -> Request:
    return Request(method, path, query, msgspec.json.encode(body), content_type)


def _delete_options(grace_seconds: int | None, propagation: str, uid: str, resource_version: str) -> Json:
    options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if propagation:
        options["propagationPolicy"] = propagation
    preconditions = _query(uid=uid, resourceVersion=resource_version)
    if preconditions:
        options["preconditions"] = preconditions
    return options
