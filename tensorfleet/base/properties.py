"""Read-only properties of attributes."""

from __future__ import annotations

import operator


def readonly(attribute: str, does: str | None = None) -> property:
    """A property that reads an attribute, or one of an attribute's; `does` is its docstring."""
    return property(operator.attrgetter(attribute), doc=does)
