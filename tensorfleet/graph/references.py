"""References: keys by identity, for objects that may be equal or cannot be compared."""

from __future__ import annotations

from typing import Any


class Reference:
    """Stands for an object by its identity, regardless of its `__eq__`."""

    __slots__ = ("_object",)

    def __init__(self, value: object) -> None:
        self._object = value

    def deref(self) -> Any:
        """The object itself."""
        return self._object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._object is other._object

    def __hash__(self) -> int:
        return id(self._object)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._object!r}>"
