"""Selectors as people type them: `a=b,c!=d,e in (x,y),f notin (z),g,!h` and `status.phase!=Failed`.

Both grammars are kubectl's: a comma is AND, an empty text selects everything. In labels `in` and `notin`
are words only where an operator is expected; in fields a backslash escapes `,`, `=` and itself.
"""

from __future__ import annotations

import re
from typing import Final

from pilotage.api.label_matcher import (
    LabelMatcher,
    Operator,
    Requirement,
    SelectorError,
    as_integer,
    key_problem,
    value_problem,
)

_TOKEN: Final = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^ \t\r\n=!(),<>]+))")
_OPERATORS: Final = {
    "=": Operator.IN,
    "==": Operator.IN,
    "!=": Operator.NOT_IN,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    ">": Operator.GT,
    "<": Operator.LT,
}
_SYMBOLS: Final = frozenset(("", "==", "!=", "=", "!", "(", ")", ",", "<", ">"))


def parse_label_selector(text: str) -> LabelMatcher:
    """Raises SelectorError that names the text and what was expected."""
    return _LabelParser(text).parse()


def parse_field_selector(text: str) -> tuple[tuple[str, str, str], ...]:
    """Requirements as (field, `=` or `!=`, value), values without their escapes. Raises SelectorError."""
    return tuple(_field_term(part, text) for part in _split_unescaped(text) if part)


class _LabelParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenize(text.rstrip(" \t\r\n"))
        self._at = 0

    def _tokenize(self, text: str) -> list[str]:
        tokens, at = [], 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._error(f"cannot read it from position {at}")
            tokens.append(match[1] or match[2])
            at = match.end()
        return tokens

    def parse(self) -> LabelMatcher:
        requirements = []
        if self._peek():
            requirements.append(self._requirement())
        while token := self._next():
            if token != ",":
                raise self._error(f"found '{token}', expected: ',' or 'end of string'")
            requirements.append(self._requirement())
        return LabelMatcher(requirements)

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._next()
            return Requirement(self._key(), Operator.DOES_NOT_EXIST)
        key = self._key()
        if self._peek() in ("", ","):
            return Requirement(key, Operator.EXISTS)
        token = self._next()
        operator = _OPERATORS.get(token)
        if operator is None:
            raise self._error(f"found '{token}', expected: in, notin, =, ==, !=, <, >")
        values = self._values() if token in ("in", "notin") else [self._exact()]
        self._check_values(operator, values)
        return Requirement(key, operator, values)

    def _key(self) -> str:
        token = self._next()
        if token in _SYMBOLS:
            raise self._error(f"found '{token}', expected: identifier")
        if problem := key_problem(token):
            raise self._error(f"key '{token}': {problem}")
        return token

    def _exact(self) -> str:
        """The value after `=`; nothing there is the empty value."""
        if self._peek() in ("", ","):
            return ""
        return self._identifier()

    def _values(self) -> list[str]:
        """`(x,y)`; an empty place is the empty value."""
        self._expect("(")
        values = []
        while True:
            values.append("" if self._peek() in (",", ")") else self._identifier())
            token = self._next()
            if token == ")":
                return values
            if token != ",":
                raise self._error(f"found '{token}', expected: ',' or ')'")

    def _identifier(self) -> str:
        token = self._next()
        if token in _SYMBOLS:
            raise self._error(f"found '{token}', expected: identifier")
        return token

    def _expect(self, wanted: str) -> None:
        token = self._next()
        if token != wanted:
            raise self._error(f"found '{token}', expected: '{wanted}'")

    def _check_values(self, operator: Operator, values: list[str]) -> None:
        if operator in (Operator.GT, Operator.LT):
            if as_integer(values[0]) is None:
                raise self._error(f"'{values[0]}': for 'Gt', 'Lt' operators, the value must be an integer")
            return
        for value in values:
            if problem := value_problem(value):
                raise self._error(f"value '{value}': {problem}")

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _error(self, problem: str) -> SelectorError:
        return SelectorError("labelSelector", self._text, f"unable to parse requirement: {problem}")


def _split_unescaped(text: str) -> list[str]:
    parts, start, at = [], 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == ",":
            parts.append(text[start:at])
            start = at + 1
        at += 1
    parts.append(text[start:])
    return parts


def _field_term(term: str, text: str) -> tuple[str, str, str]:
    match = re.match(r"([^=!]*)(!=|==|=)", term)
    if match is None or not match[1].strip():
        raise SelectorError("fieldSelector", text, f"invalid selector; can't understand '{term}'")
    operator = "!=" if match[2] == "!=" else "="
    return match[1].strip(), operator, _unescape(term[match.end() :], text)


def _unescape(value: str, text: str) -> str:
    """The value without its escapes. A bare `=` or an unknown escape is an error."""
    result, at = [], 0
    while at < len(value):
        if value[at] == "=":
            raise SelectorError("fieldSelector", text, f"unescaped '=' in value '{value}'")
        if value[at] == "\\":
            at += 1
            if value[at : at + 1] not in ("\\", ",", "="):
                raise SelectorError("fieldSelector", text, f"invalid escape in value '{value}'")
        result.append(value[at])
        at += 1
    return "".join(result)
