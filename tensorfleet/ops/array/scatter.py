"""Writing slices and elements by index into new tensors: scatter_nd and the tensor_scatter family."""

from __future__ import annotations

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, difference
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.kernels.arrays import is_numpy, zeros_of
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.array.gather import index_columns
from tensorfleet.ops.array.shape import bracketed, dense_gradient
from tensorfleet.ops.common import ints, shape_given_by
from tensorfleet.ops.samples import case

_X = np.arange(12, dtype=np.float32).reshape(4, 3)


def scatter_into(
    xp: ArrayModule, current: Array, indices: Array, updates: Array, how: str, check: Check
) -> Array:
    """`current` with `updates` set, added, subtracted, or taken as max or min at `indices`."""
    depth, dims = indices.shape[-1] if indices.shape else 1, tuple(current.shape)
    if 0 in dims and (np.prod(indices.shape) or np.prod(updates.shape)):
        text = f"Indices and updates specified for empty output.  indices shape: {bracketed(indices.shape)}"
        raise errors.invalid(text)
    wanted = (*indices.shape[:-1], *dims[depth:])
    if depth > len(dims) or tuple(updates.shape) != wanted:
        raise errors.invalid(
            "Dimensions of updates must be indices.shape[:-1] + shape[indices.shape[-1]:], got updates.shape "
            f"{bracketed(updates.shape)}, indices.shape {bracketed(indices.shape)}, shape {bracketed(dims)}"
        )
    columns = index_columns(xp, indices, dims, "shape", check)
    if is_numpy(xp):
        return _scatter_numpy(current, columns, updates, how)
    from tensorfleet.kernels.xla import at

    place = at(xp.asarray(current), columns)
    if how == "sub":
        return place.add(-updates)
    if how == "add" and current.dtype == bool:
        how = "max"
    result: Array = getattr(place, how)(updates)
    return result


_NUMPY = {"add": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum}


def _scatter_numpy(current: Array, columns: tuple[Array, ...], updates: Array, how: str) -> Array:
    out = np.array(current)
    if how == "set":
        out[columns] = updates
    else:
        _NUMPY[how].at(out, columns, updates)
    return out


def check_scatter_shapes(target: TensorShape, indices: TensorShape, updates: TensorShape, word: str) -> None:
    """ValueError unless updates can go to these places of the target, which messages call `word`."""
    elements = [s.num_elements() if s._d is not None else None for s in (target, indices, updates)]
    if elements[0] == 0 and (elements[1] or elements[2]):
        raise ValueError(f"Indices and updates specified for empty {word} shape")
    if not indices._d or updates._d is None:
        return
    lead, depth = len(indices._d) - 1, indices._d[-1]
    outer, first = TensorShape._of(indices._d[:-1]), TensorShape._of(updates._d[:lead])
    if not outer.is_compatible_with(first):
        raise ValueError(
            f"The outer {lead} dimensions of indices.shape={bracketed(indices._d)} must match the outer {lead} "
            f"dimensions of updates.shape={bracketed(updates._d)}: {difference(outer, first)}"
        )
    if target._d is None or depth is None:
        return
    inner, rest = TensorShape._of(target._d[depth:]), TensorShape._of(updates._d[lead:])
    if not inner.is_compatible_with(rest):
        raise ValueError(
            f"The inner {inner.rank} dimensions of {word}.shape={bracketed(target._d)} must match the inner "
            f"{rest.rank} dimensions of updates.shape={bracketed(updates._d)}: {difference(inner, rest)}"
        )


def _new_shape(op: Operation) -> TensorShape:
    target = shape_given_by(op, 2)
    check_scatter_shapes(target, op._inputs[0].shape, op._inputs[1].shape, "output")
    return target


def _changed_shape(op: Operation) -> TensorShape:
    target = op._inputs[0].shape
    check_scatter_shapes(target, op._inputs[1].shape, op._inputs[2].shape, "output")
    return target


@op(
    "ScatterNd",
    "indices: Tindices[1+], updates: T[1+], shape: Tindices[1] -> output: T",
    "T: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''",
    shape=_new_shape,
    static=["shape"],
    examples=[
        case(np.array([[1], [3], [1]], np.int32), _X[:3], np.array([4, 3], np.int32)),
        case(np.array([[0, 1]]), np.array([2.0]), np.array([2, 2])),
        case(np.zeros((0, 1), np.int32), np.zeros(0, np.int32), np.array([3], np.int32)),
    ],
)
def _scatter_nd(xp: ArrayModule, indices: Array, updates: Array, shape: Array, *, check: Check) -> Array:
    zeros = zeros_of(ints(shape), updates.dtype)
    return scatter_into(xp, zeros if is_numpy(xp) else xp.asarray(zeros), indices, updates, "add", check)


gradient("ScatterNd")(lambda op, dy: (None, apply("GatherNd", dense_gradient(dy), op._inputs[0]), None))


@export("scatter_nd", "manip.scatter_nd")
def scatter_nd(
    indices: TensorLike, updates: TensorLike, shape: TensorLike, name: str | None = None
) -> Tensor:
    """Zeros of `shape` with `updates` added at `indices`."""
    return apply("ScatterNd", indices, updates, shape, name=name)


_CASES = [
    case(_X, np.array([[2], [0]], np.int32), np.array([[5, 6, 7], [1, 2, 3]], np.float32)),
    case(_X, np.array([[0, 1], [3, 2]]), np.array([9, 8], np.float32)),
]


def _tensor_scatter(name: str, how: str, types: str = "index", first: str = "tensor") -> None:
    @op(
        name,
        f"{first}: T[1+], indices: Tindices[1+], updates: T -> output: T",
        f"T: type; Tindices: {types}; bad_indices_policy: string = ''",
        shape=_changed_shape,
        examples=_CASES,
    )
    def _kernel(xp: ArrayModule, tensor: Array, indices: Array, updates: Array, *, check: Check) -> Array:
        return scatter_into(xp, xp.asarray(tensor), indices, updates, how, check)


_tensor_scatter("TensorScatterUpdate", "set", "{int16, int32, int64, uint16}")
_tensor_scatter("TensorScatterAdd", "add")
_tensor_scatter("TensorScatterSub", "sub")
_tensor_scatter("ScatterNdNonAliasingAdd", "add", first="input")


@gradient("TensorScatterUpdate")
def _update_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    _, indices, updates = op._inputs
    dy = dense_gradient(dy)
    kept = apply("TensorScatterUpdate", dy, indices, zeros_like(updates))
    return kept, None, apply("GatherNd", dy, indices)


@gradient("TensorScatterAdd", "ScatterNdNonAliasingAdd")
def _add_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    return dy, None, apply("GatherNd", dense_gradient(dy), op._inputs[1])


@gradient("TensorScatterSub")
def _sub_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    return dy, None, apply("Neg", apply("GatherNd", dense_gradient(dy), op._inputs[1]))


@export("tensor_scatter_update", "tensor_scatter_nd_update")
def tensor_scatter_update(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """`tensor` with `updates` in place of what was at `indices`."""
    return apply("TensorScatterUpdate", tensor, indices, updates, name=name)


@export("tensor_scatter_add", "tensor_scatter_nd_add")
def tensor_scatter_add(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """`tensor` with `updates` added at `indices`."""
    return apply("TensorScatterAdd", tensor, indices, updates, name=name)


@export("tensor_scatter_sub", "tensor_scatter_nd_sub")
def tensor_scatter_sub(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """`tensor` with `updates` subtracted at `indices`."""
    return apply("TensorScatterSub", tensor, indices, updates, name=name)
