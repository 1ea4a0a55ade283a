"""Trees into structs: every unknown field and every value of a wrong type, by their paths."""

from __future__ import annotations

import copy
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from pilotage.runtime.config_errors import ConfigError, Problem

T = TypeVar("T", bound=msgspec.Struct)

_AT = re.compile(r" - at `\$?(.*)`$", re.DOTALL)
_MOST_PROBLEMS = 50
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def read_shape(tree: Any, kind: type[T], path: str = "") -> T:
    """`tree` as a `kind`. Raises ConfigError with the paths of what does not belong there."""
    problems = list(unknown_fields(tree, kind, path))
    known = _without(tree, [problem.field.removeprefix(path).lstrip(".") for problem in problems])
    for _ in range(_MOST_PROBLEMS):
        try:
            read = msgspec.convert(known, kind)
        except msgspec.ValidationError as error:
            problem, inner = _as_problem(str(error), known, path)
            problems.append(problem)
            if not inner or inner.endswith("]"):
                break  # the rest of a list would change its place
            known = _without(known, [inner])
        else:
            if problems:
                break
            return read
    raise ConfigError(problems)


def _without(tree: Any, paths: Sequence[str]) -> Any:
    """A copy of `tree` without the fields at `paths`."""
    if not paths:
        return tree
    copied = copy.deepcopy(tree)
    for path in paths:
        *parents, last = [name or int(index) for name, index in _STEP.findall(path)]
        part = copied
        for step in parents:
            part = part[step]
        part.pop(last)
    return copied


def without_nulls(tree: Any) -> Any:
    """The tree without fields that are null: they are not given."""
    if isinstance(tree, Mapping):
        return {name: without_nulls(value) for name, value in tree.items() if value is not None}
    return [without_nulls(item) for item in tree] if isinstance(tree, list | tuple) else tree


def unknown_fields(tree: Any, kind: Any, path: str = "") -> Iterator[Problem]:
    """Fields of `tree`, at any depth, that the structs of `kind` do not have."""
    for option in _options(kind):
        if isinstance(option, type) and issubclass(option, msgspec.Struct):
            yield from _unknown_in_struct(tree, option, path)
        elif get_origin(option) in (list, tuple) and isinstance(tree, list | tuple):
            for index, item in enumerate(tree):
                yield from unknown_fields(item, get_args(option)[0], f"{path}[{index}]")


def _unknown_in_struct(tree: Any, kind: type[msgspec.Struct], path: str) -> Iterator[Problem]:
    if not isinstance(tree, Mapping):
        return
    hints = get_type_hints(kind)
    known = {f.encode_name: hints[f.name] for f in msgspec.structs.fields(kind)}
    for name, value in tree.items():
        where = f"{path}.{name}" if path else str(name)
        if name in known:
            yield from unknown_fields(value, known[name], where)
        else:
            shown = None if isinstance(value, Mapping | list | tuple) else value
            yield Problem(where, shown, f"unknown field{_similar(str(name), known)}")


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _similar(name: str, known: Mapping[str, Any]) -> str:
    close = [one for one in known if one.lower() == name.lower()]
    return f", did you mean {close[0]}?" if close else ""


def _as_problem(text: str, tree: Any, path: str) -> tuple[Problem, str]:
    """What msgspec says, and where below `path` that is."""
    found = _AT.search(text)
    inner = found.group(1).lstrip(".") if found else ""
    reason = _AT.sub("", text)
    field = f"{path}.{inner}" if path and inner and not inner.startswith("[") else f"{path}{inner}"
    return Problem(field, _at(tree, inner), reason[:1].lower() + reason[1:]), inner


def _at(tree: Any, inner: str) -> Any:
    for name, index in _STEP.findall(inner):
        try:
            tree = tree[int(index)] if index else tree[name]
        except (KeyError, IndexError, TypeError):
            return None
    return tree if not isinstance(tree, dict | list) else None
