"""Updates of some rows, or some slices, of a variable: the Scatter family, reference and resource."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.rows import FUSED, accumulate, check_rows, put_rows
from tensorfleet.ops.array.scatter import check_scatter_shapes
from tensorfleet.ops.state.optimizer_steps import state_shape


def _divide(current: np.ndarray, update: np.ndarray) -> np.ndarray:
    """Division as C does it: towards zero for integers."""
    if current.dtype.kind not in "iu":
        return np.divide(current, update)
    quotient = np.abs(current) // np.abs(update)
    return np.where((current < 0) != (update < 0), -quotient, quotient).astype(current.dtype)


# How the old row and the update make the new row; None replaces it.
_COMBINE: dict[str, Callable | None] = {
    "Update": None,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _divide,
    "Min": np.minimum,
    "Max": np.maximum,
}


def _scatter_shape(op: Operation) -> Any:
    variable, indices, updates = state_shape(op, 0), op._inputs[1].shape, op._inputs[2].shape
    if variable.rank == 0:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if updates.rank != 0:
        rest = TensorShape(None) if variable.rank is None else variable[1:]
        updates.merge_with(indices.concatenate(rest))
    return op._inputs[0].shape if op.spec.outputs else []


def _check_shapes(rows: Any, indices: Any, updates: Any) -> None:
    if updates.ndim and updates.shape != indices.shape + rows.shape[1:]:
        raise errors.invalid(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
            f"updates.shape {list(updates.shape)}, indices.shape {list(indices.shape)}, params.shape "
            f"{list(rows.shape)}"
        )


def _scatter(combine: Callable | None, rows: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> None:
    _check_shapes(rows, indices, updates)
    flat = check_rows(indices, rows.shape[0])
    _write(combine, rows, flat, updates.reshape(flat.shape + rows.shape[1:]) if updates.ndim else updates)


def _write(combine: Callable | None, rows: np.ndarray, flat: np.ndarray, updates: np.ndarray) -> None:
    if not flat.size:
        return
    if combine is None:
        put_rows(
            rows, flat, updates
        )  # numpy keeps the last of several rows for one index, as TensorFlow does
        return
    if combine is _divide and rows.dtype.kind in "iu" and not np.all(updates):
        raise errors.invalid("Integer division by zero")
    accumulate(combine, rows, flat, updates)


def _fused(sign: int, xp: Any, rows: Any, indices: Any, updates: Any, check: Any) -> Any:
    """The form for XLA of an addition or subtraction. Where a check has failed before it changes nothing."""
    _check_shapes(rows, indices, updates)
    flat, count = indices.reshape(-1), rows.shape[0]
    check((flat >= 0) & (flat < count), "indices are out of range")
    change = updates.reshape(flat.shape + rows.shape[1:]) if updates.ndim else updates
    return rows.at[xp.where(check.passed(), flat, count)].add(change if sign > 0 else -change, mode="drop")


def _nd_shape(op: Operation) -> Any:
    variable, indices, updates = state_shape(op, 0), op._inputs[1].shape, op._inputs[2].shape
    check_scatter_shapes(variable, indices, updates, "input")
    return op._inputs[0].shape if op.spec.outputs else []


def _scatter_nd(
    combine: Callable | None, array: np.ndarray, indices: np.ndarray, updates: np.ndarray, policy: bytes
) -> None:
    if not array.ndim:
        raise errors.invalid("Output must be at least 1-D, got shape: []")
    depth = indices.shape[-1]
    keys = indices.reshape(int(np.prod(indices.shape[:-1])), depth)
    lead, rest = array.shape[:depth], array.shape[depth:]
    if depth > array.ndim or updates.shape != indices.shape[:-1] + rest:
        raise errors.invalid(
            "Must have updates.shape = indices.shape[:-1] + ref.shape[indices.shape[-1]:], got updates.shape "
            f"{list(updates.shape)}, indices.shape {list(indices.shape)}, ref.shape {list(array.shape)}"
        )
    updates = updates.reshape(len(keys), *rest)
    good = ((keys >= 0) & (keys < np.array(lead, np.int64))).all(axis=1)
    if not good.all():
        if policy != b"IGNORE":
            raise _bad_key(keys, good, indices.shape[:-1], array.shape)
        keys, updates = keys[good], updates[good]
    flat = np.zeros(len(keys), np.int64)
    for axis, size in enumerate(lead):
        flat = flat * size + keys[:, axis]
    rows = array.reshape(int(np.prod(lead)), *rest)
    _write(combine, rows, flat, updates)
    if not np.may_share_memory(array, rows):
        array[...] = rows.reshape(array.shape)  # the array's layout did not allow a view


def _bad_key(keys: Any, good: Any, outer: tuple[int, ...], shape: tuple[int, ...]) -> Exception:
    bad = int(np.argmin(good))
    where = ",".join(str(int(i)) for i in np.unravel_index(bad, outer or (1,)))
    key = ", ".join(str(int(k)) for k in keys[bad])
    text = f"indices[{where}] = [{key}] does not index into shape [{','.join(map(str, shape))}]"
    return errors.invalid(text)


def _register(kind: str, combine: Callable | None) -> None:
    """Declares Scatter<kind> and ResourceScatter<kind>."""
    types = "type" if combine is None else "number"
    locking = "true" if combine is None else "false"

    def kernel(xp: Any, rows: Any, indices: Any, updates: Any) -> None:
        _scatter(combine, rows, np.asarray(indices), np.asarray(updates))

    op(
        f"Scatter{kind}",
        "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
        f"T: {types}; Tindices: index; use_locking: bool = {locking}",
        shape=_scatter_shape,
        updates=["ref"],
        rows="indices",
    )(kernel)
    op(
        f"ResourceScatter{kind}",
        "resource: resource, indices: Tindices, updates: dtype ->",
        f"dtype: {types}; Tindices: index",
        shape=_scatter_shape,
        updates=["resource"],
        rows="indices",
        stateful=True,
    )(kernel)
    not_differentiable(f"Scatter{kind}", f"ResourceScatter{kind}")


def _register_nd(kind: str, combine: Callable | None) -> None:
    """Declares ScatterNd<kind> and ResourceScatterNd<kind>."""
    types = "type" if combine is None else "number"
    locking = "true" if combine is None else "false"

    def kernel(xp: Any, rows: Any, indices: Any, updates: Any, *, bad_indices_policy: bytes) -> None:
        _scatter_nd(combine, rows, np.asarray(indices), np.asarray(updates), bad_indices_policy)

    op(
        f"ScatterNd{kind}",
        "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
        f"T: {types}; Tindices: index; use_locking: bool = {locking}; bad_indices_policy: string = ''",
        shape=_nd_shape,
        updates=["ref"],
        rows="indices",
    )(kernel)
    op(
        f"ResourceScatterNd{kind}",
        "ref: resource, indices: Tindices, updates: T ->",
        "T: type; Tindices: index; use_locking: bool = true; bad_indices_policy: string = ''",
        shape=_nd_shape,
        updates=["ref"],
        rows="indices",
        stateful=True,
    )(kernel)
    not_differentiable(f"ScatterNd{kind}", f"ResourceScatterNd{kind}")


for _kind, _combine in _COMBINE.items():
    _register(_kind, _combine)
for _kind, _sign in (("Add", 1), ("Sub", -1)):
    FUSED[f"Scatter{_kind}"] = FUSED[f"ResourceScatter{_kind}"] = partial(_fused, _sign)
for _kind in ("Update", "Add", "Sub", "Min", "Max"):
    _register_nd(_kind, _COMBINE[_kind])


def _update(kind: str, ref: Any, indices: Any, updates: Any, use_locking: bool, name: str | None) -> Any:
    if ref.dtype._is_ref_dtype:
        return apply_any(kind, ref, indices, updates, use_locking=use_locking, name=name)
    updates = to_tensor(updates, ref.dtype)
    return ref._written(apply_any("Resource" + kind, ref.handle, indices, updates, name=name), True)


@export("scatter_update")
def scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Replaces the rows `indices` of the variable `ref` by `updates`; for a repeated index the last wins."""
    return _update("ScatterUpdate", ref, indices, updates, use_locking, name)


@export("scatter_add")
def scatter_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Adds `updates` to the rows `indices` of the variable `ref`; repeated indices add up."""
    return _update("ScatterAdd", ref, indices, updates, use_locking, name)


@export("scatter_sub")
def scatter_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtracts `updates` from the rows `indices` of the variable `ref`."""
    return _update("ScatterSub", ref, indices, updates, use_locking, name)


@export("scatter_mul")
def scatter_mul(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Multiplies the rows `indices` of the variable `ref` by `updates`."""
    return _update("ScatterMul", ref, indices, updates, use_locking, name)


@export("scatter_div")
def scatter_div(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Divides the rows `indices` of the variable `ref` by `updates`."""
    return _update("ScatterDiv", ref, indices, updates, use_locking, name)


@export("scatter_min")
def scatter_min(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Lowers the rows `indices` of the variable `ref` to `updates` where those are smaller."""
    return _update("ScatterMin", ref, indices, updates, use_locking, name)


@export("scatter_max")
def scatter_max(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Raises the rows `indices` of the variable `ref` to `updates` where those are larger."""
    return _update("ScatterMax", ref, indices, updates, use_locking, name)


@export("scatter_nd_update")
def scatter_nd_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Replaces the slices of the variable `ref` that the rows of `indices` point at."""
    return _update("ScatterNdUpdate", ref, indices, updates, use_locking, name)


@export("scatter_nd_add")
def scatter_nd_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Adds to the slices of the variable `ref` that the rows of `indices` point at."""
    return _update("ScatterNdAdd", ref, indices, updates, use_locking, name)


@export("scatter_nd_sub")
def scatter_nd_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtracts from the slices of the variable `ref` that the rows of `indices` point at."""
    return _update("ScatterNdSub", ref, indices, updates, use_locking, name)


@export("batch_scatter_update")
def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """`scatter_update` for each item of a batch: `indices` has the batch dimensions and one more."""
    indices = to_tensor(indices, name="indices")
    return scatter_nd_update(ref, _with_batch_positions(indices), updates, use_locking, name)


def _with_batch_positions(indices: Tensor) -> Tensor:
    """The indices with, before each, the position in the batch that it belongs to."""
    rank = indices.shape.rank
    if rank is None:
        raise ValueError("tf.batch_scatter_update needs indices of known rank.")
    shape = apply("Shape", indices)
    columns = []
    for axis in range(rank - 1):
        size = apply("StridedSlice", shape, [axis], [axis + 1], [1], shrink_axis_mask=1)
        steps = apply("Cast", apply("Range", 0, size, 1), DstT=indices.dtype.base_dtype)
        column = apply("Reshape", steps, [-1 if i == axis else 1 for i in range(rank)])
        columns.append(apply("BroadcastTo", column, shape))
    return apply("Pack", [*columns, indices], axis=-1)
