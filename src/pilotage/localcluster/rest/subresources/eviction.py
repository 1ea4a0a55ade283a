"""POST pods/N/eviction: a deletion that disruption budgets may refuse."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from pilotage.api.meta import LabelSelector
from pilotage.api.selectors import LabelMatcher, SelectorError, compile_label_selector
from pilotage.api.wire import Response
from pilotage.localcluster.rest.bodies import read_tree
from pilotage.localcluster.rest.call import Call, answer
from pilotage.localcluster.rest.conditions import set_condition
from pilotage.localcluster.rest.deleting import delete_record, options_from
from pilotage.localcluster.rest.errors import (
    RestError,
    bad_request,
    internal_error,
    success_status,
    too_many_requests,
)
from pilotage.localcluster.rest.preconditions import check_uid, check_version_precondition
from pilotage.localcluster.rest.timestamps import time_text
from pilotage.localcluster.rest.writing import current
from pilotage.localcluster.store import Record, Tree

_BUDGETS = "poddisruptionbudgets.policy"
_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_RETRY_WHEN_BEHIND = 10
_MAX_DISRUPTED = 2000
_API_VERSIONS = (None, "", "policy/v1", "policy/v1beta1")


def evict(call: Call) -> Response:
    """Raises RestError 400, 404, 409, 429 or 500."""
    body = read_tree(call.request)
    if body.get("kind", "Eviction") != "Eviction" or body.get("apiVersion") not in _API_VERSIONS:
        raise bad_request("expected an Eviction of policy/v1")
    meta = body.get("metadata") or {}
    if meta.get("name", call.name) != call.name:
        raise bad_request("name in URL does not match name in Eviction object")
    record = current(call)
    options = options_from(body.get("deleteOptions") or {}, call)
    check_uid(call.kind, record, options.uid)
    check_version_precondition(call.kind, record, options.version)
    options = replace(options, uid=None, version=None)  # met: what follows changes the version
    tree = record.tree()
    if not _skips_budgets(tree):
        _spend_budget(call, record, tree)
        record = _mark(call, tree)
    delete_record(call, record, options)
    return answer(success_status(call.kind, record.name, record.uid), 201)


def _skips_budgets(tree: Tree) -> bool:
    """Pods that count for no budget: pending, finished, going."""
    phase = (tree.get("status") or {}).get("phase")
    return phase in ("Pending", "Succeeded", "Failed") or "deletionTimestamp" in tree["metadata"]


def _spend_budget(call: Call, record: Record, tree: Tree) -> None:
    budgets = [
        budget
        for candidate in call.store.list(_BUDGETS, call.namespace).records
        if _selects(budget := candidate.tree(), record)
    ]
    if len(budgets) > 1:
        raise internal_error(_SEVERAL)
    if budgets and not _is_free(budgets[0], tree):
        _spend(call, budgets[0], record.name)


def _selects(budget: Tree, record: Record) -> bool:
    return _matcher(budget).matches(record.labels)


def _matcher(budget: Tree) -> LabelMatcher:
    selector = (budget.get("spec") or {}).get("selector")
    try:
        view = msgspec.convert(selector, LabelSelector) if isinstance(selector, dict) else None
        return compile_label_selector(view)
    except (SelectorError, msgspec.ValidationError):
        return compile_label_selector(None)


def _is_free(budget: Tree, pod: Tree) -> bool:
    """Whether an unhealthy pod may go without the budget's leave."""
    if _is_ready(pod):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return bool(healthy >= desired > 0)


def _is_ready(pod: Tree) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _spend(call: Call, budget: Tree, pod_name: str) -> None:
    """Take one allowed disruption. Raises RestError 429 when there is none."""
    status = budget.setdefault("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _behind(budget)
    allowed, disrupted = status.get("disruptionsAllowed", 0), status.setdefault("disruptedPods", {})
    if allowed <= 0:
        raise _violates(budget, status)
    if len(disrupted) > _MAX_DISRUPTED:
        raise too_many_requests(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller", 0
        )
    status["disruptionsAllowed"] = allowed - 1
    disrupted[pod_name] = time_text(call.now)
    call.store.update(_BUDGETS, budget, is_dry_run=call.is_dry_run)


def _violates(budget: Tree, status: Tree) -> RestError:
    name, needed = budget["metadata"]["name"], status.get("desiredHealthy", 0)
    has = status.get("currentHealthy", 0)
    message = f"The disruption budget {name} needs {needed} healthy pods and has {has} currently"
    return too_many_requests(
        _VIOLATES, 0, details={"causes": [{"reason": "DisruptionBudget", "message": message}]}
    )


def _behind(budget: Tree) -> RestError:
    name = budget["metadata"]["name"]
    message = f"The disruption budget {name} is still being processed by the server."
    details: Tree = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    return too_many_requests(_VIOLATES, _RETRY_WHEN_BEHIND, details=details)


def _mark(call: Call, tree: Tree) -> Record:
    set_condition(
        tree.setdefault("status", {}),
        "DisruptionTarget",
        "True",
        call.now,
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )
    return call.store.update("pods", tree, is_dry_run=call.is_dry_run)
