"""Reports made of dataclasses, as JSON objects."""

from __future__ import annotations

import dataclasses
import math
from typing import Any


def as_json(report: Any) -> dict[str, Any]:
    """A dataclass as plain data. Numbers that JSON does not have (nan, inf) become null."""
    result: dict[str, Any] = _plain(report)
    return result


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
