"""A scratch pad in this process."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping


class WorkingMemory(MutableMapping[str, object]):
    """Names and values for the code around a run; the model does not see it, and it is not kept.

    A mutable mapping with `set`, `delete` and `clear` beside a mapping's own methods (`get`, `in`, `len`, iteration in
    the order of setting, `items`, …). Not for several threads at once.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[str, object] = {}

    def set(self, key: str, value: object) -> None:
        """Remember `value` under `key`, in place of what was there."""
        self._values[key] = value

    def delete(self, key: str) -> bool:
        """Forget `key`; whether there was something."""
        if key not in self._values:
            return False
        del self._values[key]
        return True

    def __getitem__(self, key: str) -> object:
        return self._values[key]

    def __setitem__(self, key: str, value: object) -> None:
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"WorkingMemory({', '.join(self._values)})"
