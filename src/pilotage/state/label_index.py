"""Who may match whom: terms by what their selector demands, pods by what their labels offer.

Most selectors demand one value of some label (`app=web`), in named namespaces. Kept by that demand, a
thousand terms cost a pod nothing but the few that ask for one of its labels. What is found are
candidates: they include everything that matches, and the caller still has to ask.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

from pilotage.api.selectors import LabelMatcher, Operator
from pilotage.state.term_values import Clause

T = TypeVar("T", bound=Hashable)

_ANY: Final = ""  # no namespace has the empty name
Place: TypeAlias = tuple[str, tuple[str, str] | None]  # namespace, label pair (None: no pair is demanded)


def _demands(selector: LabelMatcher) -> tuple[tuple[str, str] | None, ...]:
    """Label pairs of which a match has one; (None,) when nothing can be said, () when nothing matches."""
    if selector.is_nothing:
        return ()
    inside = [r for r in selector.requirements if r.operator is Operator.IN]
    if not inside:
        return (None,)
    narrowest = min(inside, key=lambda r: len(r.values))
    return tuple((narrowest.key, value) for value in narrowest.values)


def _places_of_clause(clause: Clause) -> Iterator[Place]:
    rule = clause.namespaces
    for namespace in rule.names if rule.selector is None else (_ANY,):
        for pair in _demands(clause.selector):
            yield namespace, pair


def _places_of_labels(namespace: str, labels: Mapping[str, str]) -> Iterator[Place]:
    for where in (namespace, _ANY):
        yield where, None
        for pair in labels.items():
            yield where, pair


class Buckets(Generic[T]):
    """Items by place, in order of arrival."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[Place, dict[T, None]] = {}

    def add(self, item: T, places: Iterator[Place]) -> None:
        for place in places:
            self._items.setdefault(place, {})[item] = None

    def discard(self, item: T, places: Iterator[Place]) -> None:
        for place in places:
            bucket = self._items.get(place)
            if bucket is not None:
                bucket.pop(item, None)
                if not bucket:
                    del self._items[place]

    def at(self, places: Iterator[Place]) -> list[T]:
        """Each item once, as long as no item shares two of the places."""
        return [item for place in places for item in self._items.get(place, ())]

    def clear(self) -> None:
        self._items.clear()


class TermsByDemand(Generic[T]):
    """Items that stand for a clause."""

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets: Buckets[T] = Buckets()

    def add(self, item: T, clause: Clause) -> None:
        self._buckets.add(item, _places_of_clause(clause))

    def discard(self, item: T, clause: Clause) -> None:
        self._buckets.discard(item, _places_of_clause(clause))

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> list[T]:
        """Items whose clause may match such a pod."""
        return self._buckets.at(_places_of_labels(namespace, labels))


class PodsByLabels(Generic[T]):
    """Items that stand for pods of one namespace and one set of labels."""

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets: Buckets[T] = Buckets()

    def add(self, item: T, namespace: str, labels: Mapping[str, str]) -> None:
        self._buckets.add(item, _places_of_labels(namespace, labels))

    def discard(self, item: T, namespace: str, labels: Mapping[str, str]) -> None:
        self._buckets.discard(item, _places_of_labels(namespace, labels))

    def clear(self) -> None:
        self._buckets.clear()

    def candidates(self, clause: Clause) -> list[T]:
        """Items that the clause may match."""
        return self._buckets.at(_places_of_clause(clause))
