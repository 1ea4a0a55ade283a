"""The JSON that extenders read and write (k8s.io/kube-scheduler extender/v1).

The Go types carry no JSON names: fields go out as they are called there (`Pod`, `NodeNames`), and come in in
any case. What has the wrong type is refused here; what makes no sense is judged by whoever asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pilotage.runtime.raw_objects import RawObjects
from pilotage.scheduling.extenders import (
    BindQuery,
    ExtenderQuery,
    FilterAnswer,
    FilterQuery,
    NamedVictims,
    Rating,
    RatingQuery,
    VictimsQuery,
)

Tree = Mapping[str, Any]


class ExtenderAnswerError(ValueError):
    """The extender says that it failed, or says what cannot be read."""


def encode(query: ExtenderQuery, raw: RawObjects) -> bytes:
    """The body of the request."""
    match query:
        case FilterQuery() | RatingQuery():
            return msgspec.json.encode(_nodes_args(query, raw))
        case BindQuery(pod=pod, node=node):
            names = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
            return msgspec.json.encode(names)
        case VictimsQuery():
            return msgspec.json.encode(_victims_args(query, raw))
    raise TypeError(f"{type(query).__name__} has no wire form")


def _nodes_args(query: FilterQuery | RatingQuery, raw: RawObjects) -> Tree:
    by_name = query.extender.node_cache_capable
    nodes = None if by_name else {"metadata": {}, "items": [raw.node(name) for name in query.node_names]}
    return {
        "Pod": raw.pod(query.pod.pod),
        "Nodes": nodes,
        "NodeNames": query.node_names if by_name else None,
    }


def _victims_args(query: VictimsQuery, raw: RawObjects) -> Tree:
    by_uid = query.extender.node_cache_capable
    offered = {
        node: {
            "Pods": [{"UID": pod.uid} if by_uid else raw.pod(pod.pod) for pod in victims.pods],
            "NumPDBViolations": victims.violations,
        }
        for node, victims in query.victims.items()
    }
    return {
        "Pod": raw.pod(query.pod.pod),
        "NodeNameToVictims": None if by_uid else offered,
        "NodeNameToMetaVictims": offered if by_uid else None,
    }


def decode(query: ExtenderQuery, body: bytes) -> Any:
    """The answer as the value that the query names. Raises ExtenderAnswerError."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise ExtenderAnswerError(f"its answer is no JSON: {problem}: {_start(body)}") from None
    if isinstance(query, RatingQuery):
        return [_rating(item) for item in _list(document, "the answer")]
    answer = _fields(document, "the answer")
    if error := _text(answer.get("error"), "error"):
        raise ExtenderAnswerError(error)
    match query:
        case FilterQuery():
            return _filter_answer(query, answer)
        case VictimsQuery():
            return _named_victims(answer)
    return None


def _filter_answer(query: FilterQuery, answer: Tree) -> FilterAnswer:
    names = answer.get("nodenames")
    if query.extender.node_cache_capable and names is not None:
        passed = [_text(name, "nodeNames") for name in _list(names, "nodeNames")]
    else:
        passed = list(_names_of(answer.get("nodes")))
    failed = _texts(answer.get("failednodes"), "failedNodes")
    unresolvable = _texts(answer.get("failedandunresolvablenodes"), "failedAndUnresolvableNodes")
    return FilterAnswer(tuple(passed), failed, unresolvable)


def _names_of(nodes: object) -> Iterable[str]:
    if nodes is None:
        return
    for item in _list(_fields(nodes, "nodes").get("items"), "nodes.items"):
        metadata = _fields(_fields(item, "nodes.items").get("metadata"), "nodes.items.metadata")
        yield _text(metadata.get("name"), "nodes.items.metadata.name")


def _named_victims(answer: Tree) -> Mapping[str, NamedVictims]:
    where = "nodeNameToMetaVictims"
    given = answer.get(where.lower())
    found = {}
    for node, victims in ({} if given is None else _mapping(given, where)).items():
        tree = {} if victims is None else _fields(victims, f"{where}.{node}")
        pods = [
            _fields(pod, f"{where}.{node}.pods") for pod in _list(tree.get("pods"), f"{where}.{node}.pods")
        ]
        uids = tuple(_text(pod.get("uid"), f"{where}.{node}.pods.uid") for pod in pods)
        found[str(node)] = NamedVictims(uids, _whole(tree.get("numpdbviolations"), "numPDBViolations"))
    return found


def _rating(item: object) -> Rating:
    tree = _fields(item, "a score")
    return Rating(_text(tree.get("host"), "host"), _whole(tree.get("score"), "score"))


# Values as Go would read them: null is nothing, names of fields in any case


def _fields(value: object, where: str) -> Tree:
    """An object whose field names are ours, in lower case."""
    tree = _mapping(value, where)
    return {str(name).lower(): part for name, part in tree.items()}


def _mapping(value: object, where: str) -> Tree:
    if not isinstance(value, dict):
        raise ExtenderAnswerError(f"{where} is {_kind(value)}, not an object")
    return value


def _list(value: object, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ExtenderAnswerError(f"{where} is {_kind(value)}, not a list")
    return value


def _text(value: object, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ExtenderAnswerError(f"{where} is {_kind(value)}, not a text")
    return value


def _texts(value: object, where: str) -> Mapping[str, str]:
    tree = {} if value is None else _mapping(value, where)
    return {str(name): _text(text, f"{where}.{name}") for name, text in tree.items()}


def _whole(value: object, where: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise ExtenderAnswerError(f"{where} is {_kind(value)}, not a whole number")
    return value


def _kind(value: object) -> str:
    return f"{value!r:.40}" if isinstance(value, int | float | str) else type(value).__name__


def _start(body: bytes) -> str:
    return repr(" ".join(body[:80].decode("utf-8", "replace").split()))
