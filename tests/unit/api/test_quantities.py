"""Quantities: what is read, how it is rounded and written, what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from pilotage.api.quantity import (
    MAX_VALUE,
    QuantityError,
    canonical,
    milli_value,
    nanos,
    parse,
    value,
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("1", 1),
        ("+5", 5),
        ("-5", -5),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("-.5", Fraction(-1, 2)),
        ("100m", Fraction(1, 10)),
        ("1n", Fraction(1, 10**9)),
        ("1u", Fraction(1, 10**6)),
        ("2k", 2000),
        ("3M", 3 * 10**6),
        ("4G", 4 * 10**9),
        ("5T", 5 * 10**12),
        ("6P", 6 * 10**15),
        ("7E", 7 * 10**18),
        ("1Ki", 2**10),
        ("1Mi", 2**20),
        ("1.5Gi", 3 * 2**29),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1e+3", 1000),
        ("25e-1", Fraction(5, 2)),
        ("128974848000m", 128974848),
        ("0.1Ki", Fraction(1024, 10)),
        (7, 7),
        (0.1, Fraction(1, 10)),
        (1e-7, Fraction(1, 10**7)),
        (2.0, 2),
    ],
)
def test_reads_exactly(text: str | int | float, amount: Fraction) -> None:
    assert parse(text) == amount


@pytest.mark.parametrize(
    "bad",
    [
        "NaN",
        "nan",
        "inf",
        "-inf",
        "1_000",
        "",
        " ",
        " 1",
        "1 ",
        "1\n",
        "1 Gi",
        "1e",
        "1e+",
        "1E-",
        "٣",
        "1.1.1",
        ".",
        "+",
        "-",
        "--1",
        "1i",
        "1ki",
        "1K",
        "1KI",
        "1gi",
        "1mi",
        "0x10",
        "1e1.5",
        "1m1",
        "1e3Ki",
        "abc",
        "Gi",
        "1,5",
        "1Gi ",
        "1e99999999999999999999",
        "9" * 600,
        "1" + "0" * 10_000,
    ],
)
def test_refuses_garbage_and_names_it(bad: str) -> None:
    with pytest.raises(QuantityError) as caught:
        nanos(bad)
    assert caught.value.value == bad
    with pytest.raises(QuantityError):
        canonical(bad)


@pytest.mark.parametrize("bad", [True, False, None, [], {}, ["1"], float("nan"), float("inf"), b"1"])
def test_refuses_what_is_neither_text_nor_number(bad: Any) -> None:
    for function in (nanos, value, milli_value, parse, canonical):
        with pytest.raises(QuantityError):
            function(bad)


def test_true_is_not_the_cached_one() -> None:
    assert value(1) == 1
    with pytest.raises(QuantityError):
        value(True)


def test_error_names_field_and_value() -> None:
    with pytest.raises(QuantityError) as caught:
        value("1 Gi")
    error = caught.value.at("spec.containers[0].resources.requests.memory")
    assert error.field == "spec.containers[0].resources.requests.memory"
    assert error.value == "1 Gi"
    assert str(error).startswith('spec.containers[0].resources.requests.memory: Invalid value: "1 Gi"')


def test_long_garbage_is_shortened_in_the_message() -> None:
    with pytest.raises(QuantityError) as caught:
        value("x" * 100_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "units", "milli"),
    [
        ("100m", 1, 100),
        ("0.1m", 1, 1),
        ("1n", 1, 1),
        ("0", 0, 0),
        ("1.0001", 2, 1001),
        ("-1.5", -2, -1500),
        ("-1n", -1, -1),
        ("1e3", 1000, 1_000_000),
        ("128974848000m", 128974848, 128974848000),
    ],
)
def test_rounds_away_from_zero(text: str, units: int, milli: int) -> None:
    assert (value(text), milli_value(text)) == (units, milli)


def test_below_a_nano_rounds_up_to_one_nano() -> None:
    assert nanos("0.1n") == 1
    assert nanos("1e-99") == 1
    assert nanos("0.0000000001") == 1
    assert nanos("-0.1n") == -1
    assert nanos("1e-400000000") == 1
    assert nanos("0e-400000000") == 0


@pytest.mark.parametrize("huge", ["10E", "8Ei", "1e999999999", "9" * 500, "1e20", 10**30, 1e300])
def test_what_is_too_large_is_capped(huge: str | int | float) -> None:
    assert value(huge) == MAX_VALUE
    assert milli_value(huge) == MAX_VALUE
    assert value("-10E") == -MAX_VALUE
    assert canonical(huge) == str(MAX_VALUE)


def test_largest_exact_value_stays_exact() -> None:
    assert value(str(MAX_VALUE)) == MAX_VALUE
    assert value(str(MAX_VALUE - 1)) == MAX_VALUE - 1


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1024Mi", "1Gi"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("12e5", "1200e3"),
        ("1e2", "100"),
        ("1e-1", "100e-3"),
        ("128974848000m", "128974848"),
        ("1500", "1500"),
        ("100000", "100k"),
        ("2048", "2048"),
        ("1023Ki", "1023Ki"),
        ("0.5Ki", "512"),
        ("0.5Mi", "512Ki"),
        ("0.1Ki", "102400m"),
        ("0Gi", "0"),
        ("0e3", "0"),
        ("-0", "0"),
        ("+1", "1"),
        ("-1500m", "-1500m"),
        ("0.1n", "1n"),
        ("1E", "1E"),
        (3, "3"),
        (0.5, "500m"),
        (1e-7, "100n"),
    ],
)
def test_canonical_form(text: str | int | float, written: str) -> None:
    assert canonical(text) == written
    assert parse(canonical(text)) == parse(text)
