"""Exact Kubernetes quantities: `100m`, `1.5Gi`, `1e3`, `.5`, `5.`, JSON numbers.

Laws:
- A quantity is a whole number of nanos. What is finer is rounded away from zero, so that a wish for a
  little stays a wish; what is larger than 2**63 - 1 is capped there. Both as Kubernetes does.
- `value` and `milli_value` are exact and rounded away from zero, never through a float.
- Garbage is refused with a `QuantityError` that names the value, and the field where the caller knows it.
- No input can make this module compute for long: length and exponents are bounded before any arithmetic.

`1E` is exa while `1E3` is an exponent. Results are cached by text: a cluster uses few different texts.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import Final, NamedTuple, TypeAlias

RawQuantity: TypeAlias = str | int | float

MAX_VALUE: Final = 2**63 - 1
NANO: Final = 10**9
_MAX_NANOS: Final = MAX_VALUE * NANO
_MAX_LENGTH: Final = 512  # of a text; Kubernetes itself has no limit
_MAX_EXPONENT: Final = 1024  # beyond it every mantissa of _MAX_LENGTH digits is capped or rounded to one nano
_CACHE_SIZE: Final = 1 << 16

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SYMBOLS: Final = {exponent: symbol for symbol, exponent in _DECIMAL.items()}
_BINARY_SYMBOLS: Final = ("", *_BINARY)
_SHAPE: Final = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))([numkMGTPE]?|[KMGTPE]i|[eE]([+-]?[0-9]{1,18}))",
)


class QuantityError(ValueError):
    """Not a quantity, or one that is not allowed there. `field` is "" while nobody has named it."""

    def __init__(self, value: object, field: str = "", problem: str = "") -> None:
        self.value = value
        self.field = field
        self.problem = problem or "must be a quantity such as 100m, 2, 1.5Gi or 1e3"
        where = f"{field}: " if field else ""
        super().__init__(f"{where}Invalid value: {_shown(value)}: {self.problem}")

    def at(self, field: str) -> QuantityError:
        """The same error with the path of the field that holds the value."""
        return QuantityError(self.value, field, self.problem)


class _Form(NamedTuple):
    nanos: int
    is_binary: bool = False
    is_exponent: bool = False


def nanos(quantity: RawQuantity) -> int:
    """Exact amount in units of 10**-9. Raises QuantityError."""
    try:
        return _nanos(quantity)
    except TypeError:  # unhashable: a list or an object stands where a quantity should
        raise QuantityError(quantity) from None


def value(quantity: RawQuantity) -> int:
    """Whole units (bytes, pieces), rounded away from zero. Raises QuantityError."""
    return round_up(nanos(quantity), NANO)


def milli_value(quantity: RawQuantity) -> int:
    """Thousandths (milli-CPU), rounded away from zero, at most 2**63 - 1. Raises QuantityError."""
    return round_up(nanos(quantity), 10**6)


def parse(quantity: RawQuantity) -> Fraction:
    """The exact amount. Raises QuantityError."""
    return Fraction(nanos(quantity), NANO)


def canonical(quantity: RawQuantity) -> str:
    """The text in which Kubernetes writes the same amount: `1024Mi` -> `1Gi`, `0.5` -> `500m`.

    Exponent forms stay exponent forms, binary ones binary where that is exact. Raises QuantityError.
    """
    try:
        return _canonical(quantity)
    except TypeError:
        raise QuantityError(quantity) from None


def round_up(amount_nanos: int, unit: int) -> int:
    """`amount_nanos` in multiples of `unit` nanos, rounded away from zero and kept inside 64 bits."""
    if amount_nanos < 0:
        return max(amount_nanos // unit, -MAX_VALUE)
    return min(-(-amount_nanos // unit), MAX_VALUE)


@lru_cache(_CACHE_SIZE, typed=True)
def _nanos(quantity: RawQuantity) -> int:
    return _read(quantity).nanos


@lru_cache(_CACHE_SIZE, typed=True)
def _canonical(quantity: RawQuantity) -> str:
    form = _read(quantity)
    if form.nanos == 0:
        return "0"
    if form.is_binary and form.nanos % NANO == 0 and abs(form.nanos) >= 1024 * NANO:
        mantissa, steps = _remove_factor(form.nanos // NANO, 1024)
        return f"{mantissa}{_BINARY_SYMBOLS[steps]}"
    mantissa, steps = _remove_factor(form.nanos, 1000)
    exponent = steps * 3 - 9
    if form.is_exponent:
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_SYMBOLS[exponent]}"


def _remove_factor(number: int, factor: int) -> tuple[int, int]:
    steps = 0
    while number % factor == 0:
        number //= factor
        steps += 1
    return number, steps


def _read(quantity: object) -> _Form:
    text = _text(quantity)
    match = _SHAPE.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise QuantityError(quantity)
    sign, whole, fraction, bare_fraction, suffix, exponent = match.groups()
    fraction = fraction or bare_fraction or ""
    digits = int((whole or "") + fraction)
    scale = int(exponent) if exponent else _DECIMAL.get(suffix, 0)
    shift = _BINARY.get(suffix, 0)
    amount = _scaled(digits << shift, scale - len(fraction))
    return _Form(-amount if sign == "-" else amount, shift > 0, exponent is not None)


def _scaled(digits: int, exponent: int) -> int:
    """digits * 10**exponent in nanos, rounded up and capped; `digits` is not negative."""
    if digits == 0:
        return 0
    power = max(-_MAX_EXPONENT, min(exponent + 9, _MAX_EXPONENT))
    factor: int = 10 ** abs(power)
    amount = digits * factor if power >= 0 else -(-digits // factor)
    return min(amount, _MAX_NANOS)


def _text(quantity: object) -> str:
    if isinstance(quantity, str):
        return quantity
    if isinstance(quantity, bool):
        raise QuantityError(quantity)
    if isinstance(quantity, int):
        return str(max(-_MAX_NANOS, min(quantity, _MAX_NANOS)))
    if isinstance(quantity, float) and isfinite(quantity):
        return format(Decimal(repr(quantity)), "f")
    raise QuantityError(quantity)


def _shown(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:70]}... ({len(text)} characters)"
