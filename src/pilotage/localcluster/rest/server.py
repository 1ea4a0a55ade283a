"""The API server as a function: a request and the time in, an answer or an open watch out.

Laws: `handle` is one atomic step (no await, no clock, no randomness but the seeded ids); every failure is
answered as a Status object; requests are sorted by path alone: to a kind, else to discovery and the like.
Who may ask is the edge's business, as are sockets and waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from pilotage.api.kinds import PathMatch, by_path
from pilotage.api.wire import Request, Response
from pilotage.localcluster.rest import discovery
from pilotage.localcluster.rest.bootstrap import bootstrap
from pilotage.localcluster.rest.call import Call
from pilotage.localcluster.rest.deleting import delete, delete_collection
from pilotage.localcluster.rest.errors import RestError, internal_error, method_not_allowed, unknown_path
from pilotage.localcluster.rest.fields import FIELD_READERS
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.listing import get_object, list_objects
from pilotage.localcluster.rest.patching import patch
from pilotage.localcluster.rest.reviews import review
from pilotage.localcluster.rest.subresources.binding import bind, create_binding
from pilotage.localcluster.rest.subresources.eviction import evict
from pilotage.localcluster.rest.subresources.finalize import finalize
from pilotage.localcluster.rest.subresources.scale import get_scale, patch_scale, replace_scale
from pilotage.localcluster.rest.watching import WatchResponse, watch_objects
from pilotage.localcluster.rest.writing import create, replace
from pilotage.localcluster.store import Cursor, Store

Answer: TypeAlias = Response | WatchResponse
Handler: TypeAlias = Callable[[Call], Answer]


def _read_many(call: Call) -> Answer:
    return watch_objects(call) if call.flag("watch") else list_objects(call)


def _read_one(call: Call) -> Answer:
    return watch_objects(call) if call.flag("watch") else get_object(call)


def _no_streams(_call: Call) -> Answer:
    raise method_not_allowed("simulated containers have no logs and run no commands")


_COLLECTION: Final[Mapping[str, Handler]] = {
    "GET": _read_many,
    "POST": create,
    "DELETE": delete_collection,
}
_OBJECT: Final[Mapping[str, Handler]] = {"GET": _read_one, "PUT": replace, "PATCH": patch, "DELETE": delete}
_SUBRESOURCES: Final[Mapping[str, Mapping[str, Handler]]] = {
    "status": {"GET": get_object, "PUT": replace, "PATCH": patch},
    "scale": {"GET": get_scale, "PUT": replace_scale, "PATCH": patch_scale},
    "binding": {"POST": bind},
    "eviction": {"POST": evict},
    "finalize": {"PUT": finalize, "POST": finalize},
    "ephemeralcontainers": {"GET": get_object},
    "resize": {"GET": get_object, "PUT": replace, "PATCH": patch},
}
_STREAMS: Final = frozenset(("log", "exec", "attach", "portforward", "proxy"))


class ApiServer:
    """Kubernetes' API over a store. `ids` names what is created, from a seed."""

    def __init__(self, store: Store, ids: Ids, now: float, *, has_storage: bool = False) -> None:
        """Puts the objects that every cluster has (namespaces, priority classes) into an empty store.

        `has_storage`: a default StorageClass as well, for a cluster in which somebody makes volumes.
        """
        self.store = store
        self._ids = ids
        self._watches: dict[Cursor, WatchResponse] = {}  # the open watches by their cursor
        if store.get("namespaces", "", "default") is None:
            bootstrap(store, ids, now, has_storage=has_storage)

    def handle(self, request: Request, now: float) -> Answer:
        """`now`: epoch seconds. Never raises: what goes wrong is answered as a Status."""
        try:
            answer = self._answer(request, now)
        except RestError as error:
            return error.response()
        except RecursionError:
            return internal_error("the object is nested too deeply").response()
        if isinstance(answer, WatchResponse):
            self._watches[answer.cursor] = answer
        return answer

    def take_ready(self) -> Sequence[WatchResponse]:
        """The watches that were waiting and got news since the last call."""
        woken = self.store.take_woken()
        return [self._watches[cursor] for cursor in woken if cursor in self._watches] if woken else ()

    def end_watch(self, watch: WatchResponse) -> None:
        """The client is gone or was told everything."""
        watch.close()
        self._watches.pop(watch.cursor, None)

    def watches(self) -> Sequence[WatchResponse]:
        return list(self._watches.values())

    def _answer(self, request: Request, now: float) -> Answer:
        place = by_path(request.path)
        if place is None:
            return discovery.answer(request)
        call = Call(
            request, place.kind, place.namespace, place.name, place.subresource, now, self.store, self._ids
        )
        return _handler(place, request.method)(call)


def make_store(*, history: int = 20_000) -> Store:
    """A store that knows the selectable fields of all kinds."""
    return Store(FIELD_READERS, history=history)


def _handler(place: PathMatch, method: str) -> Handler:
    """Raises RestError 404 or 405."""
    kind = place.kind
    if not kind.is_stored:
        return _unstored(place, method)
    if not place.name:
        handlers = _COLLECTION
    elif not place.subresource:
        handlers = _OBJECT
    elif place.subresource in _STREAMS and kind.resource == "pods":
        return _no_streams
    elif kind.subresource(place.subresource) is not None:
        handlers = _SUBRESOURCES.get(place.subresource, {})
    else:
        raise unknown_path()
    handler = handlers.get("GET" if method == "HEAD" else method)
    if handler is None:
        raise method_not_allowed()
    return handler


def _unstored(place: PathMatch, method: str) -> Handler:
    if place.name or method != "POST":
        raise method_not_allowed()
    return create_binding if place.kind.resource == "bindings" else review
