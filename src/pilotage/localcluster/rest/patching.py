"""PATCH in its four forms, each a function from the old tree to the new one.

The patched object then takes the same path as a replaced one. A resourceVersion in the patch is an optimistic
lock; without one the patch applies to whatever is there (nothing can come between: a request is one step).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import jsonpatch
import jsonpointer

from pilotage.api.wire import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Response
from pilotage.localcluster.rest import schema, strategic
from pilotage.localcluster.rest.applying import apply
from pilotage.localcluster.rest.bodies import media_type, metadata_of, parse_json
from pilotage.localcluster.rest.call import Call
from pilotage.localcluster.rest.errors import RestError, bad_request, unsupported_media
from pilotage.localcluster.rest.field_validation import check_fields
from pilotage.localcluster.rest.rendering import shown_tree
from pilotage.localcluster.rest.writing import answer_object, change, check_name, current, to_stored
from pilotage.localcluster.store import Record, Tree

Patcher: TypeAlias = Callable[[Call, Tree, object], object]


def patch(call: Call) -> Response:
    if media_type(call.request.content_type) == APPLY_PATCH:
        return apply(call)
    record = current(call)
    patched = patched_tree(call, record)
    check_name(call, metadata_of(patched))
    check_fields(call, patched)
    return answer_object(call, change(call, record, to_stored(call, patched)))


def patched_tree(call: Call, record: Record) -> Tree:
    """The object after the request's patch. Raises RestError 400, 415 or 422."""
    media = media_type(call.request.content_type)
    patcher = _PATCHERS.get(media)
    if patcher is None:
        raise unsupported_media(media, (*_PATCHERS, APPLY_PATCH))
    patched = patcher(call, shown_tree(call.kind, record), parse_json(call.request.body))
    if not isinstance(patched, dict):
        raise bad_request("the patched object is no object")
    return patched


def _json_patch(_call: Call, tree: Tree, body: object) -> object:
    return json_patched(tree, body)


def json_patched(tree: Tree, body: object) -> object:
    """`tree` after a JSON patch (RFC 6902); `tree` is consumed. Raises RestError 400 or 422."""
    if not isinstance(body, list):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    try:
        return jsonpatch.JsonPatch(body).apply(tree, in_place=True)
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request(f"invalid JSON patch: {error}") from None
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, KeyError) as error:
        raise _rejected(str(error)) from None


def _rejected(why: str) -> RestError:
    message = f"the server rejected our request due to an error in our request: {why}"
    return RestError(422, "Invalid", message)


def _merge_patch(_call: Call, tree: Tree, body: object) -> object:
    if not isinstance(body, dict):
        raise bad_request("json: cannot unmarshal into Go value of type map[string]interface {}")
    return merge(tree, body)


def merge(target: object, patch_tree: object) -> object:
    """RFC 7386. `target` may be changed."""
    if not isinstance(patch_tree, dict):
        return patch_tree
    merged = target if isinstance(target, dict) else {}
    for name, value in patch_tree.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def _strategic_patch(call: Call, tree: Tree, body: object) -> object:
    if not isinstance(body, dict):
        raise bad_request("json: cannot unmarshal into Go value of type map[string]interface {}")
    try:
        return strategic.apply(schema.type_of(call.kind), tree, body)
    except strategic.PatchError as error:
        raise _rejected(str(error)) from None


_PATCHERS: Mapping[str, Patcher] = {
    JSON_PATCH: _json_patch,
    MERGE_PATCH: _merge_patch,
    STRATEGIC_PATCH: _strategic_patch,
}
