"""Tables of the server: the requests for them, and the rows of a watch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from pilotage.api.kinds import Kind
from pilotage.api.wire import BOOKMARK, ERROR, TABLE, Request
from pilotage.client.api import ApiClient, Json
from pilotage.client.errors import error_of_body, error_of_status
from pilotage.client.lines import closed_at_end

_ACCEPT = f"{TABLE},application/json"
_OK = 200


async def read_table(client: ApiClient, request: Request) -> Json:
    """The Table that answers a request. Raises ApiError, TransportError."""
    answer = await client.raw(request)
    table: Json = msgspec.json.decode(answer.body, type=Json)
    return table


def table_requests(
    kind: Kind, namespace: str, names: Sequence[str], selector: str, fields: str
) -> list[Request]:
    """One request per name, or one for the whole list."""
    if names:
        return [Request("GET", kind.object_path(namespace, name), accept=_ACCEPT) for name in names]
    query = _query(selector, fields)
    return [Request("GET", kind.collection_path(namespace), query, accept=_ACCEPT)]


async def table_events(
    client: ApiClient, kind: Kind, namespace: str, selector: str, fields: str, version: str
) -> AsyncIterator[Json]:
    """Tables of changed rows after `version`; goes on where the server ends a stream. Raises ApiError."""
    while True:
        query = {**_query(selector, fields), "watch": "true", "resourceVersion": version}
        request = Request("GET", kind.collection_path(namespace), query, accept=_ACCEPT)
        stream = await client.transport.stream(request)
        try:
            if stream.status != _OK:
                raise error_of_body(stream.status, await stream.read(), stream.headers)
            async with closed_at_end(stream.lines()) as lines:
                async for line in lines:
                    event = msgspec.json.decode(line, type=Json)
                    if event["type"] == ERROR:
                        raise error_of_status(event["object"])
                    table: Json = event["object"]
                    version = table["metadata"]["resourceVersion"] or version
                    if event["type"] != BOOKMARK:
                        yield table
        finally:
            await stream.close()


def _query(selector: str, fields: str) -> dict[str, str]:
    pairs = (("labelSelector", selector), ("fieldSelector", fields))
    return {name: value for name, value in pairs if value}
