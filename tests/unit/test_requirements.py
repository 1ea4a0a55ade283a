"""`docs/requirements.md` leaves no requirement out and names only files that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
EXPECTED = [
    f"{letter}{number}"
    for letter, last in (("S", 9), ("A", 20), ("R", 15), ("B", 6))
    for number in range(1, last + 1)
]
REQUIREMENTS, SHOWN, FIELD_CASES = re.split(r"^## (?:Shown by|Field cases)$", TEXT, flags=re.MULTILINE)


def rows(text: str) -> dict[str, list[str]]:
    """Cells of the table rows that begin with an id."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"[A-Z]\d+", cells[0]):
            assert cells[0] not in found, f"{cells[0]} stands twice"
            found[cells[0]] = cells[1:]
    return found


def paths(cell: str) -> list[str]:
    return re.findall(r"`([^`]+\.py)`", cell)


def test_every_requirement_has_its_row() -> None:
    assert list(rows(REQUIREMENTS)) == EXPECTED


def test_states_say_what_is_missing_and_what_is_tested() -> None:
    for name, (state, text, code, tests) in rows(REQUIREMENTS).items():
        assert state in ("done", "partly", "open"), name
        if state != "open":
            assert text, name
            assert paths(code), name
            assert paths(tests), name


def test_every_path_exists() -> None:
    missing = [
        path
        for *_, code, tests in rows(REQUIREMENTS).values()
        for folder, cell in (("src/pilotage", code), ("tests", tests))
        for path in paths(cell)
        if not (ROOT / folder / path).is_file()
    ]
    missing += [
        path
        for *_, tests in rows(FIELD_CASES).values()
        for path in paths(tests)
        if not (ROOT / "tests" / path).is_file()
    ]
    missing += [path for path in re.findall(r"tests/[\w/]+\.py", SHOWN) if not (ROOT / path).is_file()]
    assert missing == []


def test_the_tests_of_a_field_case_name_it() -> None:
    """By its id or, as `D1-D11` does, by a range."""
    for name, (_, tests) in rows(FIELD_CASES).items():
        for path in paths(tests):
            assert _names(name, (ROOT / "tests" / path).read_text(encoding="utf-8")), (
                f"{path} does not name {name}"
            )


def _names(name: str, text: str) -> bool:
    if re.search(rf"\b{name}\b", text):
        return True
    ranges = re.findall(rf"\b{name[0]}(\d+)-{name[0]}(\d+)\b", text)
    return any(int(first) <= int(name[1:]) <= int(last) for first, last in ranges)
