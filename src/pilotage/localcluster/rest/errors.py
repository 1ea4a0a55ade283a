"""Failures as the API names them: each is raised as a `RestError` and answered as a `Status` object.

One constructor per row of the API's error table, so that texts exist once. `subject` is what stands before
the quoted name: the resource (`pods`, `deployments.apps`) or, for invalid objects, the kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pilotage.api.kinds import Kind
from pilotage.api.wire import Response, status_tree
from pilotage.localcluster.store import Tree, encode_tree


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why an object is refused. `message` goes on after the field: `Invalid value: ...`."""

    field: str
    reason: str
    message: str


class RestError(Exception):
    """The request fails with this status; nothing was changed."""

    def __init__(
        self, code: int, reason: str, message: str, *, details: Tree | None = None, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.retry_after = retry_after
        self.list_metadata: Tree = {}  # metadata of the Status: the token of an expired list
        if retry_after:
            self.details["retryAfterSeconds"] = retry_after

    def status(self) -> Tree:
        """The `Status` object."""
        tree = status_tree(self.code, self.reason, self.message, **self.details)
        tree["metadata"] = self.list_metadata
        return tree

    def response(self) -> Response:
        headers = {"retry-after": str(self.retry_after)} if self.retry_after else {}
        return Response(self.code, encode_tree(self.status()), headers)


def success_status(kind: Kind, name: str, uid: str = "") -> Tree:
    """A Success without an object, for deletes and the like."""
    tree = status_tree(200, "", "", **details_of(kind, name, uid))
    del tree["code"]
    return tree


def details_of(kind: Kind, name: str, uid: str = "") -> Tree:
    details: Tree = {"name": name, "kind": kind.plural}
    if kind.group:
        details["group"] = kind.group
    if uid:
        details["uid"] = uid
    return details


def bad_request(message: str) -> RestError:
    return RestError(400, "BadRequest", message)


def unauthorized() -> RestError:
    return RestError(401, "Unauthorized", "Unauthorized")


def forbidden(kind: Kind, name: str, why: str) -> RestError:
    message = f'{kind.resource} "{name}" is forbidden: {why}'
    return RestError(403, "Forbidden", message, details=details_of(kind, name))


def not_found(kind: Kind, name: str) -> RestError:
    return RestError(404, "NotFound", f'{kind.resource} "{name}" not found', details=details_of(kind, name))


def unknown_path() -> RestError:
    return RestError(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed(
    why: str = "the server does not allow this method on the requested resource",
) -> RestError:
    return RestError(405, "MethodNotAllowed", why)


def not_acceptable() -> RestError:
    return RestError(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml",
    )


def already_exists(kind: Kind, name: str) -> RestError:
    message = f'{kind.resource} "{name}" already exists'
    return RestError(409, "AlreadyExists", message, details=details_of(kind, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(kind: Kind, name: str, why: str = MODIFIED, *, subresource: str = "") -> RestError:
    subject = f"{kind.resource}/{subresource}" if subresource else kind.resource
    message = f'Operation cannot be fulfilled on {subject} "{name}": {why}'
    details = details_of(kind, name)
    if subresource:
        details["kind"] = f"{kind.plural}/{subresource}"
    return RestError(409, "Conflict", message, details=details)


def precondition_failed(kind: Kind, name: str, what: str, wanted: str, found: str) -> RestError:
    why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    return conflict(kind, name, why)


def expired(message: str) -> RestError:
    return RestError(410, "Expired", message)


def too_large(limit: int) -> RestError:
    return RestError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def unsupported_media(given: str, accepted: Sequence[str]) -> RestError:
    message = (
        f"the body of the request was in an unknown format ({given or 'none'}) "
        f"- accepted media types include: {', '.join(accepted)}"
    )
    return RestError(415, "UnsupportedMediaType", message)


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> RestError:
    """422 with one cause per fault; several are listed in brackets."""
    subject = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    texts = [f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: Tree = {"name": name, "kind": kind.kind}
    if kind.group:
        details["group"] = kind.group
    details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return RestError(422, "Invalid", f'{subject} "{name}" is invalid: {text}', details=details)


def invalid_value(field: str, value: Any, why: str) -> Cause:
    return Cause(field, "FieldValueInvalid", f"Invalid value: {quoted(value)}: {why}")


def required_value(field: str, why: str = "") -> Cause:
    return Cause(field, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def forbidden_field(field: str, why: str) -> Cause:
    return Cause(field, "FieldValueForbidden", f"Forbidden: {why}")


def unsupported_value(field: str, value: Any, supported: Sequence[str]) -> Cause:
    names = ", ".join(quoted(item) for item in supported)
    return Cause(
        field, "FieldValueNotSupported", f"Unsupported value: {quoted(value)}: supported values: {names}"
    )


def quoted(value: Any) -> str:
    return encode_tree(value).decode()


def too_many_requests(message: str, retry_after: int, *, details: Tree | None = None) -> RestError:
    return RestError(429, "TooManyRequests", message, details=details, retry_after=retry_after)


def internal_error(message: str) -> RestError:
    return RestError(500, "InternalError", message)


def version_too_large(version: int, current: int) -> RestError:
    message = f"Too large resource version: {version}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return RestError(504, "Timeout", f"Timeout: {message}", details={"causes": [cause]}, retry_after=1)
