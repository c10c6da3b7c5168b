"""Dense tensors from a few of their elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet import errors
from tensorfleet.api import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.ops.basic import zeros_of
from tensorfleet.ops.common import ints, shape_given_by
from tensorfleet.ops.elementwise import bracketed


@op(
    "SparseToDense",
    "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T -> dense: T",
    "validate_indices: bool = true; T: type; Tindices: index",
    shape=lambda op: shape_given_by(op, 1),
    host=True,  # the number of elements changes from run to run, that of the result does not
)
def _sparse_to_dense(
    ctx: Any, indices: Any, output_shape: Any, values: Any, default: Any, *, validate_indices: bool
) -> Any:
    dims, places = ints(output_shape), np.asarray(indices)
    places = places.reshape(1, 1) if places.ndim == 0 else places[:, None] if places.ndim == 1 else places
    if places.ndim != 2 or places.shape[1] != len(dims):
        text = "output_shape has incorrect number of elements: "
        raise errors.InvalidArgumentError(None, None, f"{text}{len(dims)} should be: {places.shape[-1]}")
    values = np.asarray(values)
    if values.ndim and values.shape != places.shape[:1]:
        text = f"sparse_values has incorrect shape {bracketed(values.shape)}, "
        raise errors.InvalidArgumentError(None, None, f"{text}should be [] or [{len(places)}]")
    _check_places(places, dims, validate_indices)
    dense = zeros_of(dims, values.dtype)
    dense[...] = default
    dense[tuple(places.T)] = values
    return dense


def _check_places(places: np.ndarray, dims: tuple[int, ...], ordered: bool) -> None:
    bad = (
        ((places < 0) | (places >= np.array(dims, places.dtype))).any(1) if len(places) else np.zeros(0, bool)
    )
    if bad.any():
        i = int(np.argmax(bad))
        text = f"indices[{i}] = {bracketed(places[i])} is out of bounds: need 0 <= index < {bracketed(dims)}"
        raise errors.InvalidArgumentError(None, None, text)
    if not ordered or len(places) < 2:
        return
    flat = np.ravel_multi_index(tuple(places.T), dims)
    steps = np.diff(flat)
    if (steps <= 0).any():
        i = int(np.argmax(steps <= 0)) + 1
        what = "repeated" if steps[i - 1] == 0 else "out of order"
        text = f"indices[{i}] = {bracketed(places[i])} is {what}. Many sparse ops require sorted indices."
        raise errors.InvalidArgumentError(None, None, text)


@gradient("SparseToDense")
def _sparse_to_dense_gradient(op: Operation, dy: Any) -> Any:
    indices = op.inputs[0]
    if indices.shape.rank is not None and indices.shape.rank < 2:
        indices = apply("Reshape", indices, [-1, 1])
    taken = apply("GatherNd", dy, indices)
    rest = apply("Sub", _total(dy), _total(taken))
    return None, None, apply("Reshape", taken, apply("Shape", op.inputs[2])), rest


def _total(x: Tensor) -> Tensor:
    if x.shape.rank is None:
        return apply("Sum", apply("Reshape", x, [-1]), np.array([0], np.int32))
    return apply("Sum", x, np.arange(x.shape.rank, dtype=np.int32))


@export("sparse_to_dense")
def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A tensor of `output_shape` with `sparse_values` at `sparse_indices` and `default_value` elsewhere."""
    return apply(
        "SparseToDense",
        sparse_indices,
        output_shape,
        sparse_values,
        default_value,
        validate_indices=validate_indices,
        name=name,
    )
