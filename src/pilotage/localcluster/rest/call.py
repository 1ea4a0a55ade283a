"""One request on its way through the server: where it points, what it asks, when it came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pilotage.api.kinds import Kind
from pilotage.api.wire import Request, Response
from pilotage.localcluster.rest.errors import Cause, RestError, bad_request
from pilotage.localcluster.rest.ids import Ids
from pilotage.localcluster.rest.negotiation import Form, negotiate
from pilotage.localcluster.store import Store, Tree, encode_tree

_TRUE = frozenset(("1", "t", "true"))
_FALSE = frozenset(("0", "f", "false", ""))


@dataclass(slots=True)
class Call:
    """`kind` is the one of the path; `namespace` is empty for cluster scope and for all namespaces."""

    request: Request
    kind: Kind
    namespace: str
    name: str
    subresource: str
    now: float
    store: Store
    ids: Ids
    warnings: list[str] = field(default_factory=list)  # what the answer warns of

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query

    @property
    def form(self) -> Form:
        return negotiate(self.request.accept, self.query.get("includeObject", ""))

    def flag(self, name: str) -> bool:
        """A boolean query parameter. Raises RestError 400 for what is none."""
        text = self.query.get(name, "").lower()
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
        raise bad_request(f'strconv.ParseBool: parsing "{self.query[name]}": invalid syntax ({name})')

    def number(self, name: str) -> int | None:
        """A non-negative integer query parameter, None when absent. Raises RestError 400."""
        text = self.query.get(name, "")
        if not text:
            return None
        if not text.isascii() or not text.isdigit():
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax ({name})')
        return int(text)

    @property
    def is_dry_run(self) -> bool:
        text = self.query.get("dryRun", "")
        if text not in ("", "All"):
            raise self.invalid_option("dryRun", text, 'supported values: "All"')
        return text == "All"

    @property
    def field_manager(self) -> str:
        return self.query.get("fieldManager", "")

    def invalid_option(self, name: str, value: str, why: str) -> RestError:
        """422 for a query parameter of a write."""
        subject = _OPTION_KINDS.get(self.request.method, "ListOptions")
        return _option_error(subject, Cause(name, "FieldValueInvalid", f'Invalid value: "{value}": {why}'))

    def invalid_list_option(self, name: str, why: str, *, is_forbidden: bool = True) -> RestError:
        """422 for a query parameter of a list or watch."""
        if is_forbidden:
            return _option_error("ListOptions", Cause(name, "FieldValueForbidden", f"Forbidden: {why}"))
        return _option_error(
            "ListOptions", Cause(name, "FieldValueNotSupported", f"Unsupported value: {why}")
        )


_OPTION_KINDS = {
    "POST": "CreateOptions",
    "PUT": "UpdateOptions",
    "PATCH": "PatchOptions",
    "DELETE": "DeleteOptions",
}


def _option_error(subject: str, cause: Cause) -> RestError:
    message = f'{subject}.meta.k8s.io "" is invalid: {cause.field}: {cause.message}'
    causes = [{"reason": cause.reason, "message": cause.message, "field": cause.field}]
    details: Tree = {"group": "meta.k8s.io", "kind": subject, "causes": causes}
    return RestError(422, "Invalid", message, details=details)


def answer(tree: object, code: int = 200) -> Response:
    return Response(code, encode_tree(tree))
