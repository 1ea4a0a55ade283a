"""State of one scheduling cycle, shared by the plugins of one pod's attempt."""

from __future__ import annotations

from typing import TypeVar, cast

T = TypeVar("T")


class CycleState:
    """Plugin data by plugin-chosen key, kept from PreFilter to PostBind.

    Values that AddPod/RemovePod change must offer `clone()`; a what-if works on `clone()` of the whole
    state, so that the original is never touched.
    """

    __slots__ = ("_data", "skip_filter", "skip_pre_bind", "skip_score")

    def __init__(self) -> None:
        self._data: dict[str, object] = {}
        # Plugins whose PreFilter (PreScore, PreBindPreFlight) returned Skip in this cycle.
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()
        self.skip_pre_bind: set[str] = set()

    def write(self, key: str, value: object) -> None:
        self._data[key] = value

    def read(self, key: str, kind: type[T]) -> T:
        """The value stored under `key`. Raises KeyError where nothing was written in this cycle."""
        value = self._data[key]
        assert isinstance(value, kind), f"cycle state {key!r} is {type(value).__name__}"
        return value

    def get(self, key: str) -> object | None:
        return self._data.get(key)

    def delete(self, key: str) -> None:
        self._data.pop(key, None)

    def clone(self) -> CycleState:
        copy = CycleState()
        copy.skip_filter = set(self.skip_filter)
        copy.skip_score = set(self.skip_score)
        copy.skip_pre_bind = set(self.skip_pre_bind)
        for key, value in self._data.items():
            clone = getattr(value, "clone", None)
            copy._data[key] = cast("object", clone()) if clone is not None else value
        return copy
