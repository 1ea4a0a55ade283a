"""Reviews: questions about who may do what, answered and not kept. Whoever is let in may do everything."""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.api.wire import Response
from pilotage.localcluster.rest.bodies import check_type, metadata_of, read_tree
from pilotage.localcluster.rest.call import Call, answer
from pilotage.localcluster.store import Tree

_USER: Tree = {"username": "pilotage", "groups": ["system:masters", "system:authenticated"]}
_EVERYTHING: Tree = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
_STATUS: Mapping[str, Tree] = {
    "TokenReview": {"authenticated": False, "error": "this cluster knows no tokens but its own"},
    "SelfSubjectReview": {"userInfo": _USER},
    "SelfSubjectRulesReview": _EVERYTHING,
}
_ALLOWED: Tree = {"allowed": True, "reason": "whoever holds the token of this cluster may do everything"}


def review(call: Call) -> Response:
    tree = read_tree(call.request)
    check_type(tree, call.kind, call.kind.api_version)
    metadata_of(tree)
    tree["status"] = _STATUS.get(call.kind.kind, _ALLOWED)
    return answer(tree, 201)
