"""PUT namespaces/N/finalize: what holds a namespace, given up by whoever emptied it."""

from __future__ import annotations

from pilotage.api.wire import Response
from pilotage.localcluster.rest.bodies import metadata_of, read_tree
from pilotage.localcluster.rest.call import Call
from pilotage.localcluster.rest.preconditions import check_uid, check_version
from pilotage.localcluster.rest.writing import answer_object, check_name, current, store_change


def finalize(call: Call) -> Response:
    """Takes over `spec.finalizers` of the body; the namespace goes when it is deleted and none is left."""
    body = read_tree(call.request)
    meta = metadata_of(body)
    check_name(call, meta)
    record = current(call)
    check_uid(call.kind, record, meta.get("uid"))
    check_version(call.kind, record, meta.get("resourceVersion"))
    tree = record.tree()
    tree.setdefault("spec", {})["finalizers"] = (body.get("spec") or {}).get("finalizers") or []
    return answer_object(call, store_change(call, record, tree))
