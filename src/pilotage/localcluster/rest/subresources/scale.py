"""GET, PUT and PATCH of scale: replicas of a workload, seen and set alone."""

from __future__ import annotations

import msgspec

from pilotage.api.meta import LabelSelector
from pilotage.api.selectors import SelectorError, compile_label_selector, match_labels
from pilotage.api.wire import MERGE_PATCH, STRATEGIC_PATCH, Response
from pilotage.localcluster.rest.bodies import media_type, metadata_of, parse_json, read_tree
from pilotage.localcluster.rest.call import Call, answer
from pilotage.localcluster.rest.errors import bad_request, invalid, invalid_value
from pilotage.localcluster.rest.patching import json_patched, merge
from pilotage.localcluster.rest.writing import change, check_name, current
from pilotage.localcluster.store import Record, Tree


def get_scale(call: Call) -> Response:
    return answer(_scale(current(call)))


def replace_scale(call: Call) -> Response:
    body = read_tree(call.request)
    check_name(call, metadata_of(body))
    return _store(call, current(call), body)


def patch_scale(call: Call) -> Response:
    record = current(call)
    body, media = parse_json(call.request.body), media_type(call.request.content_type)
    is_merge = media in (MERGE_PATCH, STRATEGIC_PATCH)
    patched = merge(_scale(record), body) if is_merge else json_patched(_scale(record), body)
    if not isinstance(patched, dict):
        raise bad_request("the patched object is no object")
    return _store(call, record, patched)


def _scale(record: Record) -> Tree:
    tree = record.tree()
    meta, spec, status = tree["metadata"], tree.get("spec") or {}, tree.get("status") or {}
    shown = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in shown if name in meta},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": {"replicas": status.get("replicas", 0), "selector": _selector_text(spec.get("selector"))},
    }


def _selector_text(selector: object) -> str:
    if not isinstance(selector, dict):
        return ""
    if not selector.keys() & {"matchLabels", "matchExpressions"}:  # a replication controller's plain map
        return str(match_labels(selector))
    try:
        return str(compile_label_selector(msgspec.convert(selector, LabelSelector)))
    except (SelectorError, msgspec.ValidationError):
        return ""


def _store(call: Call, record: Record, scale: Tree) -> Response:
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise bad_request("json: cannot unmarshal Scale.spec.replicas: it must be an integer")
    if replicas < 0:
        why = "must be greater than or equal to 0"
        raise invalid(call.kind, record.name, [invalid_value("spec.replicas", replicas, why)])
    old, new = record.tree(), record.tree()
    new.setdefault("spec", {})["replicas"] = replicas
    meta = scale.get("metadata") or {}
    for name in ("uid", "resourceVersion"):
        if meta.get(name):
            new["metadata"][name] = meta[name]
        elif name == "resourceVersion":
            del new["metadata"][name]
    return answer(_scale(change(call, record, new, old)))
