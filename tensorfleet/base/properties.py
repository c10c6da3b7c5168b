"""Read-only properties of attributes."""

from __future__ import annotations

import operator
from typing import Any


def readonly(attribute: str, does: str | None = None) -> Any:
    """A property that reads an attribute, or one of an attribute's; `does` is its docstring.

    The class says the type: `name: str = readonly("_name")`.
    """
    return property(operator.attrgetter(attribute), doc=does)
