"""A pod's resize for people: why it waits, with numbers, who goes for it, or why nobody can."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pilotage.frontends.explain.amounts import amounts, names, number_of
from pilotage.frontends.explain.layout import heading, pairs
from pilotage.frontends.explain.resize import OUT, Balance, Resize
from pilotage.scheduling.deferred_cycle import ResizeOutcome

_SENTENCES: Final = {
    ResizeOutcome.FITS.value: "it fits now; the kubelet has to carry it out",
    ResizeOutcome.WAITS.value: "pods that are leaving make room; nobody else has to go",
    OUT: "the scheduler takes no part",
}


def resize_lines(resize: Resize | None, columns: int) -> list[str]:
    """Nothing for a pod without a resize."""
    if resize is None:
        return []
    title = f"Resize on {resize.node}: {resize.state}" + (f" since {resize.since}" if resize.since else "")
    return [heading(title), *pairs(_rows(resize), columns)]


def _rows(resize: Resize) -> Iterable[tuple[str, str]]:
    for index, balance in enumerate(resize.balances):
        yield ("amounts" if index == 0 else ""), _balance_text(balance)
    yield "kubelet", resize.kubelet_says
    yield "now", _now(resize)
    yield "leaving", names(resize.leaving)
    yield "preempted", names(resize.preempted)


def _now(resize: Resize) -> str:
    if resize.victims:
        victims = names([f"{v.namespace}/{v.name} (priority {v.priority})" for v in resize.victims])
        return f"it would preempt {number_of(len(resize.victims), 'pod')}: {victims}"
    sentence = _SENTENCES.get(resize.outcome)
    if sentence is None:
        return f"nobody can make room: {resize.message}"
    return f"{sentence}: {resize.message}" if resize.outcome == OUT else sentence


def _balance_text(balance: Balance) -> str:
    numbers = (balance.wants, balance.has, balance.free, balance.of, balance.short)
    wants, has, free, of, short = amounts(balance.resource, numbers)
    text = f"wants {wants} {balance.resource}, has {has}; {free} of {of} are free for it"
    return f"{text}, {short} short" if balance.short else text
