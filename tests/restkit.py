"""A small hand on the pure API server: requests in, decoded answers out, a clock that only the test moves."""

from __future__ import annotations

import json
from typing import Any

from pilotage.api.wire import Request, Response
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.server import ApiServer, make_store
from pilotage.localcluster.rest.watching import WatchResponse

JSON = "application/json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
PODS = "/api/v1/namespaces/default/pods"
START = 1_800_000_000.0


class Answer:
    """Status and decoded body of one response."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self.content_type = response.content_type
        self.body: Any = (
            json.loads(response.body) if response.body.startswith((b"{", b"[")) else response.body
        )

    @property
    def message(self) -> str:
        return str(self.body["message"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])


class Watch:
    """An open watch, polled by the test."""

    def __init__(self, api: Api, response: WatchResponse) -> None:
        self._api = api
        self.response = response

    def events(self) -> list[Any]:
        """Everything that it has to say now, decoded."""
        found: list[Any] = []
        while lines := self.response.poll(self._api.now):
            found += [json.loads(line) for line in lines]
        return found

    def told(self) -> list[tuple[str, str]]:
        """(type, name) of each event."""
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in self.events()]


class Api:
    def __init__(self, *, history: int = 1000) -> None:
        self.now = START
        self.server = ApiServer(make_store(history=history), Ids(b"test"), self.now)
        self.store = self.server.store

    def call(
        self, method: str, path: str, body: Any = None, *, media: str = JSON, accept: str = JSON, **query: str
    ) -> Answer:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        response = self.server.handle(Request(method, path, query, raw, media, accept), self.now)
        assert isinstance(response, Response)
        return Answer(response)

    def get(self, path: str, *, accept: str = JSON, **query: str) -> Answer:
        return self.call("GET", path, accept=accept, **query)

    def create(self, path: str, body: Any, **query: str) -> Any:
        answer = self.call("POST", path, body, **query)
        assert answer.status == 201, answer.body
        return answer.body

    def patch(self, path: str, body: Any, media: str = MERGE, **query: str) -> Answer:
        return self.call("PATCH", path, body, media=media, **query)

    def watch(self, path: str, *, accept: str = JSON, **query: str) -> Watch:
        response = self.server.handle(
            Request("GET", path, {"watch": "true", **query}, accept=accept), self.now
        )
        assert isinstance(response, WatchResponse), response
        return Watch(self, response)

    def pod(self, name: str, *, node: str = "", **meta: Any) -> Any:
        """Creates a pod, bound when `node` is given."""
        created = self.create(
            PODS, {"metadata": {"name": name, **meta}, "spec": {"containers": [container()]}}
        )
        if node:
            self.bind(name, node)
        return created

    def bind(self, name: str, node: str, **metadata: str) -> Answer:
        return self.call("POST", f"{PODS}/{name}/binding", {"metadata": metadata, "target": {"name": node}})

    def set_status(self, name: str, status: Any) -> Answer:
        return self.patch(f"{PODS}/{name}/status", {"status": status}, STRATEGIC)

    def check(self) -> None:
        self.store.check_invariants()


def container(name: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "registry.example/app:1", **more}
