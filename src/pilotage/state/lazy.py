"""A value computed at first use and kept on the instance, without the lock of functools.cached_property.

There is one thread that owns the state, so there is nobody to lock out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801  a decorator, named like property
    """Decorator for methods without arguments; the class needs a `__dict__`."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> lazy[T] | T:
        if instance is None:
            return self
        value = self._compute(instance)
        if self._is_kept(value):
            vars(instance)[self._name] = value  # found there from now on: this descriptor sets nothing
        return value

    def _is_kept(self, _value: T) -> bool:
        return True


class lazy_unless_empty(lazy[T]):  # noqa: N801  a decorator, named like property
    """Keeps nothing for the many instances whose value is empty, which must be cheap to find out."""

    def _is_kept(self, value: T) -> bool:
        return bool(value)
