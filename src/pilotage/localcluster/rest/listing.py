"""GET of one object and of lists: versions, pages, forms.

A list shows one version of the store. Its continue token names that version and the last key shown, so that
the following pages show the same moment; once that history is gone the token answers 410, with a token
that goes on at the present.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from dataclasses import dataclass

import msgspec

from pilotage.api.wire import Response
from pilotage.localcluster.rest.call import Call
from pilotage.localcluster.rest.errors import RestError, bad_request, expired, not_found, version_too_large
from pilotage.localcluster.rest.rendering import list_bytes, object_bytes
from pilotage.localcluster.rest.selection import Selection, selection_of
from pilotage.localcluster.store import ExpiredError, FutureVersionError, Record, Snapshot

_EXPIRED_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. "
    "Start a new list without it, or go on with the continue token of this response: the rest of the list is "
    "then the present one and may not fit the part that was shown."
)
_NOW = -1  # a token's version that means "whatever is there now"


class _Token(msgspec.Struct, frozen=True):
    rv: int
    start: str

    def encode(self) -> str:
        return urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


_decode_token = msgspec.json.Decoder(_Token).decode


def _token(text: str) -> _Token:
    try:
        return _decode_token(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, msgspec.DecodeError):
        raise bad_request("continue key is not valid: it is not one that this server gave out") from None


@dataclass(frozen=True, slots=True)
class _Page:
    version: int | None  # the version to show, None for now
    after: str  # the last key that was shown
    limit: int  # 0: no limit


def get_object(call: Call) -> Response:
    record = call.store.get(call.kind.storage_resource, call.namespace, call.name)
    if record is None:
        raise not_found(call.kind, call.name)
    return Response(200, object_bytes(call.kind, record, call.form, call.now))


def list_objects(call: Call) -> Response:
    if "sendInitialEvents" in call.query:
        raise call.invalid_list_option("sendInitialEvents", "sendInitialEvents is forbidden for list")
    form, selection, page = call.form, selection_of(call), _page(call)
    snapshot = _snapshot(call, page)
    records, metadata = _cut(snapshot, selection, page)
    body = list_bytes(call.kind, records, form, call.now, str(snapshot.version), metadata)
    return Response(200, body)


def _page(call: Call) -> _Page:
    limit = call.number("limit") or 0
    text = call.query.get("continue", "")
    wanted, match = call.query.get("resourceVersion", ""), call.query.get("resourceVersionMatch", "")
    _check_match(call, text, wanted, match)
    if text:
        if wanted not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        token = _token(text)
        return _Page(None if token.rv == _NOW else token.rv, token.start, limit)
    version = parse_version(wanted)
    check_known(call, version)
    is_exact = match == "Exact" or (limit > 0 and not match)
    return _Page(version if version and is_exact else None, "", limit)


def _check_match(call: Call, text: str, wanted: str, match: str) -> None:
    """The rules of resourceVersionMatch. Raises RestError 422."""
    if not match:
        return
    why = ""
    if text:
        why = "resourceVersionMatch is forbidden when continue is provided"
    elif not wanted:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match not in ("Exact", "NotOlderThan"):
        raise call.invalid_list_option(
            "resourceVersionMatch",
            f'supported values: "Exact", "NotOlderThan", not "{match}"',
            is_forbidden=False,
        )
    elif match == "Exact" and wanted == "0":
        why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if why:
        raise call.invalid_list_option("resourceVersionMatch", why)


def parse_version(text: str) -> int:
    """A resourceVersion parameter; 0 for none. Raises RestError 400."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise bad_request(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text)


def check_known(call: Call, version: int) -> None:
    """Raises RestError 504 for a version that was not reached yet."""
    try:
        call.store.check_version(version)
    except FutureVersionError as error:
        raise version_too_large(error.version, error.current) from None


def _snapshot(call: Call, page: _Page) -> Snapshot:
    try:
        return call.store.list(call.kind.storage_resource, call.namespace, version=page.version)
    except FutureVersionError as error:
        raise version_too_large(error.version, error.current) from None
    except ExpiredError as error:
        if not page.after:
            raise expired(f"The resourceVersion for the provided list is too old. {error}") from None
        raise _expired_token(page) from None


def _expired_token(page: _Page) -> RestError:
    error = expired(_EXPIRED_TOKEN)
    error.list_metadata = {"continue": _Token(_NOW, page.after).encode()}
    return error


def _cut(snapshot: Snapshot, selection: Selection, page: _Page) -> tuple[list[Record], dict[str, object]]:
    """The records of this page, and the list's continue token and remaining count."""
    records = snapshot.records
    start = bisect_right(records, page.after, key=_key) if page.after else 0
    if not selection.is_narrow:
        end = start + page.limit if page.limit else len(records)
        return _finish(list(records[start:end]), snapshot.version, len(records) - end)
    chosen: list[Record] = []
    for record in records[start:]:
        if not selection.matches(record):
            continue
        if page.limit and len(chosen) == page.limit:
            return chosen, {"continue": _Token(snapshot.version, chosen[-1].key).encode()}
        chosen.append(record)
    return chosen, {}


def _finish(chosen: list[Record], version: int, remaining: int) -> tuple[list[Record], dict[str, object]]:
    if remaining <= 0 or not chosen:
        return chosen, {}
    token = _Token(version, chosen[-1].key).encode()
    return chosen, {"continue": token, "remainingItemCount": remaining}


def _key(record: Record) -> str:
    return record.key
