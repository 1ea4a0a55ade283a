"""The explanation for people: from 80 to 120 columns, the answer first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import rich_click as click

from pilotage.frontends.explain.amounts import amount, names, number_of
from pilotage.frontends.explain.grouping import Group, groups
from pilotage.frontends.explain.layout import heading, pairs, width, wrapped
from pilotage.frontends.explain.model import Explanation, Rejection, WhatIf
from pilotage.frontends.explain.queuetext import queue_rows
from pilotage.frontends.explain.resize import Resize
from pilotage.frontends.explain.resizetext import resize_lines
from pilotage.frontends.explain.scores import score_lines
from pilotage.frontends.explain.whatif import DEPTH

_KINDS: Final = 5  # lines per reason before the rest is only counted


def lines(
    explanation: Explanation,
    queue: Mapping[str, Any] | None = None,
    *,
    is_complete: bool = False,
    nodes: Collection[str] = (),
    resize: Resize | None = None,
) -> list[str]:
    """`is_complete`: every node by itself; `nodes`: only these, with all that is known of them."""
    columns = width()
    parts = [
        _head(explanation, queue, columns),
        resize_lines(resize, columns),
        _verdict(explanation, columns),
    ]
    if nodes:
        parts.append(_single_nodes(explanation, nodes, columns))
    else:
        parts.append(score_lines(explanation, columns, is_complete=is_complete))
        parts.append(_rejected(explanation, columns, is_complete=is_complete))
        parts.append(_changes(explanation, columns))
        parts.append(_wakers(explanation, columns))
    parts.append([line for note in explanation.notes for line in wrapped(note, "      ", columns, "Note: ")])
    return "\n\n".join("\n".join(part) for part in parts if part).splitlines()


# The pod


def _head(explanation: Explanation, queue: Mapping[str, Any] | None, columns: int) -> list[str]:
    pod = explanation.pod
    ending = ", being deleted" if pod.is_terminating else ""
    title = f"Pod {pod.namespace}/{pod.name}: {pod.phase}{f' on {pod.node}' if pod.node else ''}{ending}"
    condition = ""
    if pod.condition_status:
        reason = f" ({pod.condition_reason})" if pod.condition_reason else ""
        condition = f"PodScheduled={pod.condition_status}{reason}"
        condition += f": {pod.condition_message}" if pod.condition_message else ""
    requests = ", ".join(f"{amount(name, number)} {name}" for name, number in sorted(pod.requests.items()))
    rows = (
        ("requests", requests or "nothing"),
        ("profile", f"{pod.profile}, priority {pod.priority}"),
        ("gates", ", ".join(pod.gates)),
        ("nominated", pod.nominated_node),
        ("condition", condition),
        ("events", str(pod.events) if pod.events else ""),
        *queue_rows(queue, pod.condition_message),
    )
    return [heading(title), *pairs(rows, columns)]


# The verdict


def _verdict(explanation: Explanation, columns: int) -> list[str]:
    return wrapped(_sentence(explanation), "", columns)


def _sentence(explanation: Explanation) -> str:
    n_nodes = number_of(explanation.n_nodes, "node")
    if not explanation.gate.is_success:
        would = f"it would go to {explanation.node}" if explanation.node else "no node could take it now"
        gate = explanation.gate
        return f"Not in the queue: {gate.message} ({gate.plugin}). Without that {would}."
    if explanation.is_error:
        return f"The attempt fails: {explanation.message}"
    if explanation.node:
        return _placed(explanation, n_nodes)
    nodes = f"no node of {explanation.n_nodes:,} can take it" if explanation.n_nodes else "there are no nodes"
    if explanation.message == explanation.pod.condition_message:
        return f"Now as before {nodes}."
    return f"{nodes[0].upper()}{nodes[1:]}: {explanation.message}"


def _placed(explanation: Explanation, n_nodes: str) -> str:
    feasible = f"{len(explanation.candidates):,} of {n_nodes} can take it"
    if explanation.is_nominated:
        return (
            f"It goes to {explanation.node}, to which it is nominated; the scores do not matter ({feasible})."
        )
    if len(explanation.candidates) == 1:
        best = f"{explanation.node} is the only node of {explanation.n_nodes:,} that can take it"
    elif len(explanation.winners) > 1:
        best = f"{feasible}; {names(explanation.winners)} are equally good, one is taken at random"
    else:
        best = f"{feasible}; {explanation.node} is the best"
    if not explanation.is_bound:
        return f"Schedulable now: {best}."
    node = explanation.pod.node
    if node in explanation.winners:
        return f"Decided anew without itself it would stay on {node}: {best}."
    is_feasible = any(candidate.node == node for candidate in explanation.candidates)
    where = "" if is_feasible else f" {node} could not take it any more."
    return f"Decided anew without itself it would leave {node}: {best}.{where}"


# Nodes that cannot


def _rejected(explanation: Explanation, columns: int, *, is_complete: bool) -> list[str]:
    if not explanation.rejections:
        return []
    found = [heading(f"Why not ({number_of(len(explanation.rejections), 'node')})")]
    for group in groups(explanation.rejections):
        found += _group_lines(group, columns)
        if is_complete:
            found += _members(explanation.rejections, group, columns)
        else:
            found += _kind_lines(group, columns)
    return found


def _group_lines(group: Group, columns: int) -> list[str]:
    reasons = ", ".join(group.reasons)
    by = f" ({group.plugin})" if group.plugin else ""
    first = f"{group.size:>5,}  "
    return wrapped(f"{reasons}{by}, {_cure(group.may_preempt)}", " " * len(first), columns, first)


def _cure(may_preempt: bool) -> str:
    return "preemption may help" if may_preempt else "preemption cannot help"


def _kind_lines(group: Group, columns: int) -> Iterable[str]:
    if not any(kind.text for kind in group.kinds):
        nodes = [node for kind in group.kinds for node in kind.nodes]
        return wrapped(names(nodes), " " * 9, columns)
    found: list[str] = []
    for kind in group.kinds[:_KINDS]:
        found += wrapped(
            f"{kind.text or 'no more is known'}: {names(kind.nodes)}", " " * 11, columns, " " * 9
        )
    rest = group.kinds[_KINDS:]
    if rest:
        number = sum(len(kind.nodes) for kind in rest)
        found.append(f"         {number_of(number, 'node')} more in {len(rest):,} other ways (--all)")
    return found


def _members(rejections: Iterable[Rejection], group: Group, columns: int) -> list[str]:
    key = (group.plugin, group.reasons, group.may_preempt)
    found: list[str] = []
    for rejection in rejections:
        if (rejection.plugin, rejection.reasons, rejection.may_preempt) == key:
            text = rejection.detail.text
            found += wrapped(f"{rejection.node}{f': {text}' if text else ''}", " " * 11, columns, " " * 9)
    return found


# Single nodes


def _single_nodes(explanation: Explanation, nodes: Collection[str], columns: int) -> list[str]:
    found = [
        _one_rejected(rejection, columns) for rejection in explanation.rejections if rejection.node in nodes
    ]
    found.append(score_lines(explanation, columns, is_complete=True, nodes=nodes))
    return "\n\n".join("\n".join(part) for part in found if part).splitlines()


def _one_rejected(rejection: Rejection, columns: int) -> list[str]:
    found = [heading(f"{rejection.node} cannot take it")]
    for index, one in enumerate((rejection, *rejection.others)):
        when = "first" if index == 0 else "then"
        text = f"{one.plugin}: {', '.join(one.reasons)}, {_cure(one.may_preempt)}"
        found += wrapped(text, " " * 9, columns, f"  {when:<7}")
        found += wrapped(one.detail.text, " " * 11, columns, " " * 9) if one.detail.text else []
    return found


# What would have to change


def _changes(explanation: Explanation, columns: int) -> list[str]:
    if explanation.node:
        return []
    sentences = [_change_text(found) for found in explanation.what_ifs]
    preemption = explanation.preemption
    if preemption is not None:
        victims = names([f"{v.namespace}/{v.name} (priority {v.priority})" for v in preemption.victims])
        number = number_of(len(preemption.victims), "pod")
        sentences.append(f"it would preempt {number} on {preemption.node}: {victims}")
    if not sentences and explanation.rejections and not explanation.is_error:
        sentences.append(f"nothing was found: no {DEPTH} changes of the pod are enough for any node")
    if not sentences:
        return []
    title = heading("What would have to change")
    return [title, *(line for text in sentences for line in wrapped(text, "      ", columns, "    "))]


def _change_text(found: WhatIf) -> str:
    count = number_of(len(found.nodes), "node")
    return f"{count} would do {', '.join(found.changes)}: {names(found.nodes)}"


def _wakers(explanation: Explanation, columns: int) -> list[str]:
    if explanation.is_schedulable or not explanation.wakers:
        return []
    rows = [(waker.plugin, ", ".join(waker.events)) for waker in explanation.wakers]
    return [heading("What may wake it"), *pairs(rows, columns)]


def show(found: Iterable[str]) -> None:
    click.echo("\n".join(found))
