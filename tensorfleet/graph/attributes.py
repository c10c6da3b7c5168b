"""Attributes of an operation: defaults filled in, values checked and brought to one form."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import as_shape
from tensorfleet.graph import registry
from tensorfleet.graph.registry import Attr, OpSpec


def complete_attrs(spec: OpSpec, known: dict[str, Any]) -> dict[str, Any]:
    """All attributes in declaration order, defaults filled in."""
    full: dict[str, Any] = {}
    for name, attr in spec.attrs.items():
        if name in known:
            full[name] = known.pop(name)
        elif attr.default is registry.REQUIRED:
            raise TypeError(f"{spec.name} needs attribute '{name}'.")
        else:
            full[name] = attr.default
    full.update(known)
    return full


def clean_attr(spec: OpSpec, attr: Attr, value: Any) -> Any:
    """Checks one attribute and brings it to its canonical Python form."""
    clean: Any
    if attr.kind.startswith("list("):
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"Expected list for attr {attr.name}")
        clean = [_cleaned(attr.kind[5:-1], attr, v) for v in value]
    else:
        clean = _cleaned(attr.kind, attr, value)
    _check_minimum(spec, attr, clean)
    _check_attr(spec, attr, clean)
    return clean


def _cleaned(kind: str, attr: Attr, value: Any) -> Any:
    try:
        return _clean(kind, value)
    except (TypeError, ValueError, OverflowError, AttributeError) as e:
        if kind == "shape":
            raise TypeError(
                f"Don't know how to convert {value!r} to a TensorShapeProto for argument '{attr.name}'"
            ) from e
        if kind == "func":
            raise TypeError(f"Don't know how to convert {value!r} to a func for argument {attr.name}") from e
        type_name = "DataType" if kind == "type" else kind
        raise TypeError(f"Expected {type_name} for argument '{attr.name}' not {value!r}.") from e


def _check_minimum(spec: OpSpec, attr: Attr, clean: Any) -> None:
    if attr.minimum is None:
        return
    if not isinstance(clean, list) and clean < attr.minimum:
        raise ValueError(
            f"Attr '{attr.name}' of '{spec.name}' Op passed {clean} less than minimum {attr.minimum}."
        )
    if isinstance(clean, list) and len(clean) < attr.minimum:
        raise ValueError(
            f"Attr '{attr.name}' of '{spec.name}' Op passed list of length {len(clean)} less than minimum "
            f"{attr.minimum}."
        )


def _check_attr(spec: OpSpec, attr: Attr, clean: Any) -> None:
    if attr.allowed is None:
        return
    for v in clean if isinstance(clean, list) else [clean]:
        if v in attr.allowed:
            continue
        if isinstance(v, DType):
            allowed = ", ".join(sorted(d.name for d in attr.allowed if isinstance(d, DType)))
            raise TypeError(
                f"Value passed to parameter '{attr.name}' has DataType {v.name} not in list of allowed values: "
                f"{allowed}"
            )
        allowed = ", ".join(f'"{a.decode()}"' for a in attr.allowed if isinstance(a, bytes))
        raise ValueError(
            f"Attr '{attr.name}' of '{spec.name}' Op passed string '{v.decode()}' not in: {allowed}."
        )


def _clean(kind: str, value: Any) -> Any:
    if kind == "type":
        return dtypes.as_dtype(value).base_dtype
    if kind == "int":
        if isinstance(value, float) and not value.is_integer():
            raise TypeError(value)
        return int(value)
    if kind == "float":
        return float(np.float32(value))  # what a GraphDef keeps of it
    if kind == "bool":
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(value)
        return bool(value)
    if kind == "string":
        return value if isinstance(value, bytes) else value.encode()
    if kind == "shape":
        return as_shape(value)
    if kind == "func" and not isinstance(value, str) and not hasattr(value, "name"):
        raise TypeError(value)
    return value
