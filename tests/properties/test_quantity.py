"""Quantities against exact fractions, for any spelling."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from pilotage.api.quantity import MAX_VALUE, QuantityError, canonical, milli_value, nanos, parse, value

_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_digits = st.text("0123456789", min_size=1, max_size=22)
_signs = st.sampled_from(["", "+", "-"])
_numbers = st.one_of(
    _digits,
    st.builds(lambda whole, part: f"{whole}.{part}", _digits, st.one_of(st.just(""), _digits)),
    st.builds(lambda part: f".{part}", _digits),
)


@st.composite
def _spellings(draw: st.DrawFn) -> tuple[str, Fraction]:
    """A text and the amount that it means, unrounded."""
    sign, number = draw(_signs), draw(_numbers)
    amount = Fraction(f"0{number}" if number.startswith(".") else number.removesuffix("."))
    if draw(st.booleans()):
        suffix = draw(st.sampled_from(sorted(_SUFFIXES)))
        factor = _SUFFIXES[suffix]
    else:
        exponent = draw(st.integers(-30, 30))
        suffix = f"{draw(st.sampled_from('eE'))}{exponent:{draw(st.sampled_from(['', '+']))}d}"
        factor = Fraction(10) ** exponent
    return f"{sign}{number}{suffix}", amount * factor * (-1 if sign == "-" else 1)


def _away_from_zero(amount: Fraction) -> int:
    return floor(amount) if amount < 0 else ceil(amount)


def _as_kubernetes_keeps(amount: Fraction) -> Fraction:
    rounded = Fraction(_away_from_zero(amount * 10**9), 10**9)
    return max(Fraction(-MAX_VALUE), min(rounded, Fraction(MAX_VALUE)))


@given(_spellings())
def test_amount_is_exact(spelling: tuple[str, Fraction]) -> None:
    text, amount = spelling
    kept = _as_kubernetes_keeps(amount)
    assert parse(text) == kept
    assert value(text) == _away_from_zero(kept)
    assert abs(milli_value(text)) == min(abs(_away_from_zero(kept * 1000)), MAX_VALUE)


@given(_spellings())
def test_canonical_form_means_the_same_and_is_stable(spelling: tuple[str, Fraction]) -> None:
    written = canonical(spelling[0])
    assert parse(written) == parse(spelling[0])
    assert canonical(written) == written


@given(_spellings())
def test_agrees_with_the_official_client_where_that_is_right(spelling: tuple[str, Fraction]) -> None:
    """The client knows no exponents beside suffixes and neither rounds nor caps."""
    text, amount = spelling
    if _as_kubernetes_keeps(amount) != amount or "e" in text.lower().removesuffix("ei").removesuffix("e"):
        return
    exact = Fraction(parse_quantity(text))
    assert abs(exact - amount) <= abs(amount) / 10**20  # decimals of 28 digits
    assert abs(parse(text) - exact) <= abs(amount) / 10**20


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_their_shortest_text(number: float) -> None:
    assert parse(number) == _as_kubernetes_keeps(Fraction(repr(number)))
    assert parse(canonical(number)) == parse(number)


@given(st.integers())
def test_integers(number: int) -> None:
    assert value(number) == max(-MAX_VALUE, min(number, MAX_VALUE))
    assert parse(canonical(number)) == parse(number)


@given(st.one_of(st.text(max_size=12), st.text("0123456789.eEKMGi+-mn _", max_size=12)))
def test_any_text_is_an_amount_or_a_quantity_error(text: str) -> None:
    try:
        amount = nanos(text)
    except QuantityError:
        return
    assert amount == nanos(canonical(text))
