"""Where an iterator is in its dataset, as bytes.

Runs say where they are in plain values: numbers, arrays, blocks, and lists and dictionaries of these. The bytes
are a description in JSON, and behind it the arrays and strings, which JSON cannot hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tensorfleet.api.data.blocks import Block
from tensorfleet.api.data.nodes import ColumnSlices
from tensorfleet.api.data.ragged import nested
from tensorfleet.base import errors
from tensorfleet.base.formats.varint import read_varint, write_varint
from tensorfleet.graph.sparse_tensor import SparseTensorValue
from tensorfleet.graph.tensor_proto import array_of, proto_of
from tensorfleet.ops.ragged.value import RaggedTensorValue


def encoded(state: object) -> bytes:
    """The bytes of a state."""
    parts: list[bytes] = []
    text = json.dumps(_described(state, parts)).encode()
    return b"".join([p for part in (text, *parts) for p in (write_varint(len(part)), part)])


def decoded(data: bytes) -> Any:
    """The state that `encoded` made these bytes of."""
    parts, at = [], 0
    try:
        while at < len(data):
            size, at = read_varint(data, at)
            parts.append(data[at : at + size])
            at += size
        return _remade(json.loads(parts[0]), parts[1:])
    except (IndexError, KeyError, TypeError, ValueError) as e:
        text = f"This is not the state of an iterator, or not one of this version: {e}"
        raise errors.DataLossError(None, None, text) from None


def _described(value: object, parts: list[bytes]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [_described(v, parts) for v in value]
    if isinstance(value, bytes):
        parts.append(value)
        return {"bytes": len(parts) - 1}
    if isinstance(value, (np.ndarray, np.generic)):
        parts.append(proto_of(np.asarray(value)).SerializeToString())
        return {"array": len(parts) - 1}
    return _described_structure(value, lambda values: [_described(v, parts) for v in values])


def _described_structure(value: object, inside: Callable[[Iterable[object]], list[Any]]) -> Any:
    """The description of an object with parts, which `inside` describes."""
    if isinstance(value, SparseTensorValue):
        return {"sparse": inside(value)}
    if isinstance(value, RaggedTensorValue):
        return {"ragged": inside([*value.nested_row_splits, value.flat_values])}
    if isinstance(value, Block):
        return {"block": [value.size, inside(value.columns)]}
    if isinstance(value, ColumnSlices):
        return {"slices": [value.size, inside(value.columns)]}
    # JSON has no sets, and its keys are strings: both are written as lists.
    if isinstance(value, set):
        return {"set": inside(value)}
    if isinstance(value, dict):
        return {"dict": [inside(pair) for pair in value.items()]}
    if isinstance(value, errors.OpError):
        return {"error": [value.error_code, value.message]}
    raise errors.UnimplementedError(
        None, None, f"An iterator that holds a {type(value).__name__} cannot be saved."
    )


def _remade(value: Any, parts: list[bytes]) -> Any:
    from tensorfleet.base.protos import TensorProto

    if isinstance(value, list):
        return [_remade(v, parts) for v in value]
    if not isinstance(value, dict):
        return value
    ((kind, inside),) = value.items()
    if kind == "bytes":
        return parts[inside]
    if kind == "array":
        return array_of(TensorProto.FromString(parts[inside]))
    if kind == "dict":
        return {k: _remade(v, parts) for k, v in inside}
    components = _remade(inside, parts)
    if kind == "sparse":
        return SparseTensorValue(*components)
    if kind == "ragged":
        return nested(components[:-1], components[-1])
    if kind == "block":
        return Block(*components)
    if kind == "slices":
        return ColumnSlices(components[1], components[0])
    if kind == "set":
        return set(components)
    if kind == "error":
        return errors.exception_type_from_error_code(components[0])(None, None, components[1])
    raise ValueError(kind)
