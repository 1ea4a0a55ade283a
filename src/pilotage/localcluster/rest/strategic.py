"""Strategic merge patches: a merge patch that knows which lists are keyed, plus its directives.

Laws: null deletes; an object is merged field by field; a keyed list is merged item by item, every other list
is replaced; directives (`$patch`, `$retainKeys`, `$setElementOrder/<f>`, `$deleteFromPrimitiveList/<f>`) act
and never stay in the result.
"""

from __future__ import annotations

from typing import Any

from pilotage.localcluster.rest.schema import ListRule, child_type, list_rule
from pilotage.localcluster.store import Tree

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


class PatchError(ValueError):
    """The patch cannot be applied to this object."""


def apply(type_name: str, target: Tree, patch: Tree) -> Tree:
    """`target` changed by `patch`. Both are consumed: neither is to be used afterwards. Raises PatchError."""
    directive = patch.pop(_PATCH, None)
    if directive == "replace":
        return patch
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchError(f"Unknown patch type: {directive} in map")
    _retain(target, patch)
    orders = {name.removeprefix(_ORDER): patch.pop(name) for name in list(patch) if name.startswith(_ORDER)}
    for name in [name for name in patch if name.startswith(_DELETE)]:
        _remove_items(target, name.removeprefix(_DELETE), patch.pop(name))
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = _merged(type_name, name, target.get(name), value)
    for name, order in orders.items():
        _reorder(target, name, list_rule(type_name, name), order)
    return target


def _retain(target: Tree, patch: Tree) -> None:
    keys = patch.pop(_RETAIN, None)
    if keys is None:
        return
    if not isinstance(keys, list):
        raise PatchError("$retainKeys must be a list")
    for name in [name for name in target if name not in keys]:
        del target[name]


def _remove_items(target: Tree, name: str, gone: object) -> None:
    items = target.get(name)
    if not isinstance(gone, list):
        raise PatchError(f"{_DELETE}{name} must be a list")
    if isinstance(items, list):
        target[name] = [item for item in items if item not in gone]


def _merged(type_name: str, name: str, old: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return apply(child_type(type_name, name), old if isinstance(old, dict) else {}, value)
    if isinstance(value, list):
        rule = list_rule(type_name, name)
        return value if rule is None else _merged_list(child_type(type_name, name), rule, name, old, value)
    return value


def _merged_list(type_name: str, rule: ListRule, name: str, old: Any, items: list[Any]) -> list[Any]:
    result = list(old) if isinstance(old, list) else []
    if not rule.merge_key:
        return result + [item for item in items if item not in result]
    if any(isinstance(item, dict) and item.get(_PATCH) == "replace" for item in items):
        return [item for item in items if not (isinstance(item, dict) and _PATCH in item)]
    for item in items:
        _merge_item(type_name, rule.merge_key, name, result, item)
    return result


def _merge_item(type_name: str, key: str, name: str, result: list[Any], item: Any) -> None:
    if not isinstance(item, dict):
        raise PatchError(f"{name}: the items of a keyed list must be objects")
    if key not in item:
        raise PatchError(f"{name}: map: {item} does not contain declared merge key: {key}")
    found = next((i for i, known in enumerate(result) if known.get(key) == item[key]), None)
    if item.get(_PATCH) == "delete":
        result[:] = [known for known in result if known.get(key) != item[key]]
    elif found is None:
        result.append(apply(type_name, {}, item))
    else:
        result[found] = apply(type_name, result[found], item)


def _reorder(target: Tree, name: str, rule: ListRule | None, order: object) -> None:
    """Put the items that `order` names in its order; the others keep their place among their neighbours."""
    items = target.get(name)
    if not isinstance(items, list) or not isinstance(order, list) or rule is None:
        return
    wanted = [_identity(item, rule.merge_key) for item in order]
    identities = [_identity(item, rule.merge_key) for item in items]
    named = [at for at, identity in enumerate(identities) if identity in wanted]
    named.sort(key=lambda at: wanted.index(identities[at]))
    others = [at for at, identity in enumerate(identities) if identity not in wanted]
    placed = []
    while named and others:
        placed.append((others if others[0] < named[0] else named).pop(0))
    target[name] = [items[at] for at in placed + named + others]


def _identity(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item
