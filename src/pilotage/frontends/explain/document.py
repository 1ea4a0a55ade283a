"""The explanation as JSON, by docs/reference/explain.md: fields are added, never renamed or removed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from pilotage.frontends.explain.grouping import Group, groups
from pilotage.frontends.explain.model import Candidate, Explanation, PodState, Rejection, Victim, WhatIf
from pilotage.frontends.explain.resize import OUT, Balance, Resize

SCHEMA: Final = "pilotage.dev/explain/v1"
Json = dict[str, Any]


def document(
    explanation: Explanation,
    queue: Mapping[str, Any] | None,
    only: Container[str] | None = None,
    resize: Resize | None = None,
) -> Json:
    """`queue`: what a running scheduler says of the pod; `only`: nodes to list, all where it is None."""
    return {
        "schema": SCHEMA,
        "pod": _pod(explanation.pod),
        "verdict": verdict(explanation),
        "message": explanation.message,
        "gate": _gate(explanation),
        "decision": {
            "node": explanation.node or None,
            "winners": list(explanation.winners),
            "byNomination": explanation.is_nominated,
        },
        "nodes": {
            "total": explanation.n_nodes,
            "feasible": len(explanation.candidates),
            "groups": [_group(group) for group in groups(explanation.rejections)],
            "list": [*_feasible(explanation, only), *_rejected(explanation, only)],
        },
        "whatIf": [_what_if(found) for found in explanation.what_ifs],
        "preemption": _preemption(explanation),
        "resize": _resize(resize),
        "wakers": [{"plugin": waker.plugin, "events": list(waker.events)} for waker in explanation.wakers],
        "queue": queue,
        "notes": list(explanation.notes),
    }


def verdict(explanation: Explanation) -> str:
    """`bound`, `gated`, `error`, `schedulable` or `unschedulable`"""
    if explanation.is_bound:
        return "bound"
    if not explanation.gate.is_success:
        return "gated"
    if explanation.is_error:
        return "error"
    return "schedulable" if explanation.node else "unschedulable"


def _pod(pod: PodState) -> Json:
    condition = {
        "type": "PodScheduled",
        "status": pod.condition_status,
        "reason": pod.condition_reason,
        "message": pod.condition_message,
    }
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "profile": pod.profile,
        "priority": pod.priority,
        "phase": pod.phase,
        "node": pod.node or None,
        "nominatedNode": pod.nominated_node or None,
        "gates": list(pod.gates),
        "condition": condition if pod.condition_status else None,
        "terminating": pod.is_terminating,
        "requests": dict(pod.requests),
        "events": pod.events,
    }


def _gate(explanation: Explanation) -> Json | None:
    gate = explanation.gate
    return None if gate.is_success else {"plugin": gate.plugin, "message": gate.message}


def _group(group: Group) -> Json:
    kinds = [{"detail": kind.text, "nodes": list(kind.nodes)} for kind in group.kinds]
    return {
        "plugin": group.plugin,
        "reasons": list(group.reasons),
        "preemptionMayHelp": group.may_preempt,
        "count": group.size,
        "kinds": kinds,
    }


def _feasible(explanation: Explanation, only: Container[str] | None) -> list[Json]:
    return [_candidate(c) for c in explanation.candidates if only is None or c.node in only]


def _candidate(candidate: Candidate) -> Json:
    return {
        "node": candidate.node,
        "feasible": True,
        "winner": candidate.is_winner,
        "total": candidate.total if candidate.scores else None,
        "scores": dict(candidate.scores),
        "scoreDetails": dict(candidate.details),
    }


def _rejected(explanation: Explanation, only: Container[str] | None) -> list[Json]:
    return [_rejection(r) for r in explanation.rejections if only is None or r.node in only]


def _rejection(rejection: Rejection) -> Json:
    tree: Json = {
        "node": rejection.node,
        "feasible": False,
        "plugin": rejection.plugin,
        "reasons": list(rejection.reasons),
        "preemptionMayHelp": rejection.may_preempt,
        "detail": rejection.detail.text,
        "numbers": dict(rejection.detail.numbers),
    }
    if rejection.others:
        tree["others"] = [_rejection(other) for other in rejection.others]
    return tree


def _what_if(found: WhatIf) -> Json:
    changes = [{"plugin": p, "text": t} for p, t in zip(found.plugins, found.changes, strict=True)]
    return {"changes": changes, "nodes": list(found.nodes)}


def _preemption(explanation: Explanation) -> Json | None:
    found = explanation.preemption
    if found is None:
        return None
    return {"node": found.node, "victims": _victims(found.victims)}


def _victims(victims: Iterable[Victim]) -> list[Json]:
    return [{"namespace": v.namespace, "name": v.name, "priority": v.priority} for v in victims]


def _resize(found: Resize | None) -> Json | None:
    if found is None:
        return None
    return {
        "state": found.state,
        "since": found.since or None,
        "kubelet": found.kubelet_says,
        "node": found.node,
        "outcome": "out" if found.outcome == OUT else found.outcome,
        "message": found.message,
        "resources": [_balance(balance) for balance in found.balances],
        "victims": _victims(found.victims),
        "leaving": list(found.leaving),
        "preempted": list(found.preempted),
    }


def _balance(balance: Balance) -> Json:
    return {
        "resource": balance.resource,
        "wants": balance.wants,
        "has": balance.has,
        "others": balance.others,
        "free": balance.free,
        "of": balance.of,
        "short": balance.short,
    }
