"""Compiled label requirements: the one place that decides whether labels match.

Laws: a matcher is a value, equal to every matcher of an equivalent spelling (`a=b`, `matchLabels: {a: b}`,
`a In [b]`), so that it can be interned. NotIn, DoesNotExist and != match objects that lack the key; all
other operators need it. Gt and Lt compare integers and match nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NO_LABELS: Final[Mapping[str, str]] = {}


class SelectorError(ValueError):
    """A selector that cannot be used; `field` and `value` say where and what."""

    def __init__(self, field: str, value: object, problem: str) -> None:
        self.field = field
        self.value = value
        self.problem = problem
        where = f"{field}: " if field else ""
        super().__init__(f'{where}Invalid value: "{value}": {problem}')


class Operator(Enum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class Requirement:
    """One condition on one key. Immutable; equal when key, operator and set of values are."""

    __slots__ = ("_hash", "_number", "_wanted", "key", "operator", "values")

    def __init__(self, key: str, operator: Operator, values: Iterable[str] = ()) -> None:
        self.key = key
        self.operator = operator
        self._wanted = frozenset(values)
        self.values = tuple(sorted(self._wanted))
        is_numeric = operator in (Operator.GT, Operator.LT) and self.values
        self._number = as_integer(self.values[0]) if is_numeric else None
        self._hash = hash((key, operator, self.values))

    def matches(self, value: str | None) -> bool:
        """Whether a label value meets it; None stands for a missing key."""
        operator = self.operator
        if operator is Operator.IN:
            return value in self._wanted
        if operator is Operator.NOT_IN:
            return value not in self._wanted
        if operator is Operator.EXISTS:
            return value is not None
        if operator is Operator.DOES_NOT_EXIST:
            return value is None
        return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        number = as_integer(value) if value is not None else None
        if number is None or self._number is None:
            return False
        return number > self._number if self.operator is Operator.GT else number < self._number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Requirement):
            return NotImplemented
        return self.key == other.key and self.operator is other.operator and self._wanted == other._wanted

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Requirement({self})"

    def __str__(self) -> str:
        """kubectl's spelling."""
        key, values = self.key, self.values
        match self.operator:
            case Operator.IN:
                return f"{key}={values[0]}" if len(values) == 1 else f"{key} in ({','.join(values)})"
            case Operator.NOT_IN:
                return f"{key}!={values[0]}" if len(values) == 1 else f"{key} notin ({','.join(values)})"
            case Operator.EXISTS:
                return key
            case Operator.DOES_NOT_EXIST:
                return f"!{key}"
            case Operator.GT:
                return f"{key}>{values[0]}"
            case Operator.LT:
                return f"{key}<{values[0]}"


class LabelMatcher:
    """All requirements at once. `is_nothing` matches no object; no requirements match every object."""

    __slots__ = ("_hash", "_others", "_pairs", "is_nothing", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = (), *, is_nothing: bool = False) -> None:
        unique = set(requirements)
        self.requirements = tuple(sorted(unique, key=lambda r: (r.key, r.operator.value, r.values)))
        self.is_nothing = is_nothing
        exact = [r for r in self.requirements if r.operator is Operator.IN and len(r.values) == 1]
        self._pairs = tuple((r.key, r.values[0]) for r in exact)
        self._others = tuple(r for r in self.requirements if r not in exact)
        self._hash = hash((self.requirements, is_nothing))

    @property
    def is_everything(self) -> bool:
        return not self.requirements and not self.is_nothing

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels (None: it has none) is selected."""
        if self.is_nothing:
            return False
        get = (labels or _NO_LABELS).get
        for key, value in self._pairs:
            if get(key) != value:
                return False
        return all(requirement.matches(get(requirement.key)) for requirement in self._others)

    def __and__(self, other: LabelMatcher) -> LabelMatcher:
        """Selects what both select."""
        if self.is_nothing or other.is_nothing:
            return NOTHING
        return LabelMatcher(self.requirements + other.requirements)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelMatcher):
            return NotImplemented
        return self.is_nothing is other.is_nothing and self.requirements == other.requirements

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"LabelMatcher({self})"

    def __str__(self) -> str:
        return "<nothing>" if self.is_nothing else ",".join(map(str, self.requirements))


NOTHING: Final = LabelMatcher(is_nothing=True)
EVERYTHING: Final = LabelMatcher()


def as_integer(text: str) -> int | None:
    """The 64-bit integer that a label value spells in decimal, else None."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


@lru_cache(1 << 14)
def key_problem(key: str) -> str:
    """Why `key` is no label key ("" when it is one): an optional DNS prefix, a slash, a short name."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or len(prefix) > 253 or _PREFIX.fullmatch(prefix) is None):
        return "prefix part must be a lower-case DNS subdomain of at most 253 characters"
    if _NAME.fullmatch(name) is None:
        return "name part must be 1 to 63 letters, digits, '-', '_' or '.', alphanumeric at both ends"
    return ""


@lru_cache(1 << 14)
def value_problem(value: str) -> str:
    """Why `value` is no label value ("" when it is one)."""
    if value == "" or _NAME.fullmatch(value) is not None:
        return ""
    return "must be empty or at most 63 letters, digits, '-', '_' or '.', alphanumeric at both ends"
