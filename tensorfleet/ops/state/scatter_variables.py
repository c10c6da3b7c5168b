"""Updates of some rows, or some slices, of a variable: the Scatter family, reference and resource."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, Dims, TensorLike
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.rows import FUSED, accumulate, check_rows, put_rows
from tensorfleet.ops.array.scatter import check_scatter_shapes
from tensorfleet.ops.state.optimizer_steps import state_shape


def _divide(current: Array, update: Array) -> Array:
    """Division as C does it: towards zero for integers."""
    quotient: Array
    if current.dtype.kind not in "iu":
        quotient = np.divide(current, update)
        return quotient
    quotient = np.abs(current) // np.abs(update)
    return np.where((current < 0) != (update < 0), -quotient, quotient).astype(current.dtype)


#: A function of the old row and the update that gives the new row; None for the update itself.
Combine: TypeAlias = Callable[[Array, Array], Array] | None

_COMBINE: dict[str, Combine] = {
    "Update": None,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _divide,
    "Min": np.minimum,
    "Max": np.maximum,
}


def _scatter_shape(op: Operation) -> TensorShape | list[TensorShape]:
    variable, indices, updates = state_shape(op, 0), op._inputs[1].shape, op._inputs[2].shape
    if variable.rank == 0:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if updates.rank != 0:
        rest = TensorShape(None) if variable.rank is None else variable[1:]
        updates.merge_with(indices.concatenate(rest))
    return op._inputs[0].shape if op.spec.outputs else []


def _check_shapes(rows: Array, indices: Array, updates: Array) -> None:
    if updates.ndim and updates.shape != indices.shape + rows.shape[1:]:
        raise errors.invalid(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
            f"updates.shape {list(updates.shape)}, indices.shape {list(indices.shape)}, params.shape "
            f"{list(rows.shape)}"
        )


def _scatter(combine: Combine, rows: Array, indices: Array, updates: Array) -> None:
    _check_shapes(rows, indices, updates)
    flat = check_rows(indices, rows.shape[0])
    _write(combine, rows, flat, updates.reshape(flat.shape + rows.shape[1:]) if updates.ndim else updates)


def _write(combine: Combine, rows: Array, flat: Array, updates: Array) -> None:
    if not flat.size:
        return
    if combine is None:
        # Of several rows for one index, numpy keeps the last, as TensorFlow does.
        put_rows(rows, flat, updates)
        return
    if combine is _divide and rows.dtype.kind in "iu" and not np.all(updates):
        raise errors.invalid("Integer division by zero")
    accumulate(combine, rows, flat, updates)


class TracedCheck(Check, Protocol):
    """The check of a traced segment."""

    def passed(self) -> Array:
        """Whether all checks so far have passed."""


def _fused(
    sign: int, xp: ArrayModule, rows: Any, indices: Array, updates: Array, check: TracedCheck
) -> Array:
    """The form for XLA of an addition or subtraction. It changes nothing after a failed check."""
    _check_shapes(rows, indices, updates)
    flat, count = indices.reshape(-1), rows.shape[0]
    check((flat >= 0) & (flat < count), "indices are out of range")
    change = updates.reshape(flat.shape + rows.shape[1:]) if updates.ndim else updates
    # An index past the end drops the update: the step runs again in numpy, from the old value.
    places = xp.where(check.passed(), flat, count)
    updated: Array = rows.at[places].add(change if sign > 0 else -change, mode="drop")
    return updated


def _nd_shape(op: Operation) -> TensorShape | list[TensorShape]:
    variable, indices, updates = state_shape(op, 0), op._inputs[1].shape, op._inputs[2].shape
    check_scatter_shapes(variable, indices, updates, "input")
    return op._inputs[0].shape if op.spec.outputs else []


def _scatter_nd(combine: Combine, array: Array, indices: Array, updates: Array, policy: bytes) -> None:
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
    good = np.all((keys >= 0) & (keys < np.array(lead, np.int64)), axis=1)
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


def _bad_key(keys: Array, good: Array, outer: Dims, shape: Dims) -> Exception:
    bad = int(np.argmin(good))
    where = ",".join(str(int(i)) for i in np.unravel_index(bad, outer or (1,)))
    key = ", ".join(str(int(k)) for k in keys[bad])
    text = f"indices[{where}] = [{key}] does not index into shape [{','.join(map(str, shape))}]"
    return errors.invalid(text)


def _register(kind: str, combine: Combine) -> None:
    """Declares Scatter<kind> and ResourceScatter<kind>."""
    types = "type" if combine is None else "number"
    locking = "true" if combine is None else "false"

    def kernel(xp: ArrayModule, rows: Array, indices: Array, updates: Array) -> None:
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


def _register_nd(kind: str, combine: Combine) -> None:
    """Declares ScatterNd<kind> and ResourceScatterNd<kind>."""
    types = "type" if combine is None else "number"
    locking = "true" if combine is None else "false"

    def kernel(
        xp: ArrayModule, rows: Array, indices: Array, updates: Array, *, bad_indices_policy: bytes
    ) -> None:
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


class ScatterFunction(Protocol):
    """A public function that updates some rows or slices of a variable."""

    def __call__(
        self,
        ref: TensorLike,
        indices: TensorLike,
        updates: TensorLike,
        use_locking: bool = ...,
        name: str | None = None,
    ) -> Any:
        """Adds the operation that updates `ref`."""


def _public(public: str, kind: str, does: str, locking: bool = False) -> ScatterFunction:
    def function(
        ref: Any,
        indices: TensorLike,
        updates: TensorLike,
        use_locking: bool = locking,
        name: str | None = None,
    ) -> Any:
        if ref.dtype._is_ref_dtype:
            return apply(kind, ref, indices, updates, use_locking=use_locking, name=name)
        updates = to_tensor(updates, ref.dtype)
        return ref._written(apply_op("Resource" + kind, ref.handle, indices, updates, name=name), True)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = does
    return export(public)(function)


scatter_update = _public(
    "scatter_update",
    "ScatterUpdate",
    "Replaces the rows `indices` of the variable `ref` by `updates`; for a repeated index the last wins.",
    locking=True,
)
scatter_add = _public(
    "scatter_add",
    "ScatterAdd",
    "Adds `updates` to the rows `indices` of the variable `ref`; repeated indices add up.",
)
scatter_sub = _public(
    "scatter_sub", "ScatterSub", "Subtracts `updates` from the rows `indices` of the variable `ref`."
)
scatter_mul = _public(
    "scatter_mul", "ScatterMul", "Multiplies the rows `indices` of the variable `ref` by `updates`."
)
scatter_div = _public(
    "scatter_div", "ScatterDiv", "Divides the rows `indices` of the variable `ref` by `updates`."
)
scatter_min = _public(
    "scatter_min",
    "ScatterMin",
    "Lowers the rows `indices` of the variable `ref` to `updates` where those are smaller.",
)
scatter_max = _public(
    "scatter_max",
    "ScatterMax",
    "Raises the rows `indices` of the variable `ref` to `updates` where those are larger.",
)
scatter_nd_update = _public(
    "scatter_nd_update",
    "ScatterNdUpdate",
    "Replaces the slices of the variable `ref` that the rows of `indices` point at.",
    locking=True,
)
scatter_nd_add = _public(
    "scatter_nd_add",
    "ScatterNdAdd",
    "Adds to the slices of the variable `ref` that the rows of `indices` point at.",
)
scatter_nd_sub = _public(
    "scatter_nd_sub",
    "ScatterNdSub",
    "Subtracts from the slices of the variable `ref` that the rows of `indices` point at.",
)


@export("batch_scatter_update")
def batch_scatter_update(
    ref: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    use_locking: bool = True,
    name: str | None = None,
) -> Any:
    """`scatter_update` for each item of a batch: `indices` has the batch dimensions and one more."""
    positions = _with_batch_positions(to_tensor(indices, name="indices"))
    return scatter_nd_update(ref, positions, updates, use_locking, name)


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
