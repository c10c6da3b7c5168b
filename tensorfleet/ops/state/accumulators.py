"""`tf.ConditionalAccumulator` and its sparse twin: gradients gathered until there are enough of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR, UNKNOWN, vector_of
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.state.queue_ops import complete, shared
from tensorfleet.state.accumulators import Accumulator, SparseAccumulator, TakeGradientAttempt

# -- operations --------------------------------------------------------------------------------------

# On a sparse accumulator: the mean of a row is over all gradients, also those without the row.
OVER_ALL = "_over_all"
_MAKES: dict[str, Any] = {"host": True, "stateful": True, "shape": lambda op: vector_of(2)}
_USES: dict[str, Any] = {"host": True, "stateful": True}
_WAITS: dict[str, Any] = {"host": True, "stateful": True, "blocks": True}
_ATTRS = (
    "dtype: number; shape: shape; container: string = ''; shared_name: string = ''; "
    "reduction_type: string(MEAN|SUM) = 'MEAN'"
)


def _make(
    ctx: HostContext, *, shape: TensorShape, container: bytes, shared_name: bytes, reduction_type: bytes
) -> Accumulator:
    make = lambda name: Accumulator(name, shape, reduction_type.decode())  # noqa: E731
    return shared(ctx, "accumulator", container, shared_name, make)


@op("SparseConditionalAccumulator", "-> handle: Ref(string)", _ATTRS, **_MAKES)
def _make_sparse(
    ctx: HostContext, *, shape: TensorShape, container: bytes, shared_name: bytes, reduction_type: bytes
) -> SparseAccumulator:
    over_all = bool(ctx.op._attrs.get(OVER_ALL))
    make = lambda name: SparseAccumulator(name, shape, reduction_type.decode(), over_all)  # noqa: E731
    return shared(ctx, "sparse accumulator", container, shared_name, make)


def _apply_gradient(ctx: HostContext, handle: Accumulator, local_step: Array, gradient: Array) -> None:
    handle.apply(int(local_step), np.asarray(gradient), owner=ctx.private.owner)


def _take_gradient(ctx: HostContext, accumulator: Accumulator, num_required: Array) -> Any:
    required = int(num_required)
    if required <= 0:
        raise errors.invalid(f"Argument num_required must be positive, but was {required}")
    attempt = TakeGradientAttempt(required)
    complete(ctx, accumulator, attempt, f"for {required} gradients in accumulator '{accumulator.name}'")
    return attempt.result


def _num_accumulated(ctx: HostContext, handle: Accumulator) -> np.int32:
    return np.int32(handle.count)


def _set_global_step(ctx: HostContext, handle: Accumulator, new_global_step: Array) -> None:
    handle.set_step(int(new_global_step))


for _prefix, _kind in (("", "Ref(string)"), ("Resource", "resource")):
    _h = f"handle: {_kind}"
    op(f"{_prefix}ConditionalAccumulator", f"-> {_h}", _ATTRS, **_MAKES)(_make)
    op(
        f"{_prefix}AccumulatorApplyGradient",
        f"{_h}, local_step: int64, gradient: dtype ->",
        "dtype: number",
        **_USES,
    )(_apply_gradient)
    op(
        f"{_prefix}AccumulatorTakeGradient",
        f"{_h}, num_required: int32 -> average: dtype",
        "dtype: number",
        shape=lambda op: UNKNOWN,
        **_WAITS,
    )(_take_gradient)
    op(
        f"{_prefix}AccumulatorNumAccumulated",
        f"{_h} -> num_accumulated: int32",
        shape=lambda op: SCALAR,
        **_USES,
    )(_num_accumulated)
    op(f"{_prefix}AccumulatorSetGlobalStep", f"{_h}, new_global_step: int64 ->", **_USES)(_set_global_step)
    not_differentiable(f"{_prefix}ConditionalAccumulator", f"{_prefix}AccumulatorTakeGradient")


@op(
    "SparseAccumulatorApplyGradient",
    "handle: Ref(string), local_step: int64, gradient_indices: int64, gradient_values: dtype, "
    "gradient_shape: int64 ->",
    "dtype: number; has_known_shape: bool",
    **_USES,
)
def _apply_sparse(
    ctx: HostContext,
    handle: SparseAccumulator,
    local_step: Array,
    indices: Array,
    values: Array,
    shape: Array,
    *,
    has_known_shape: bool,
) -> None:
    dims = np.asarray(shape) if has_known_shape else None
    handle.apply(int(local_step), np.asarray(indices), np.asarray(values), dims, owner=ctx.private.owner)


op(
    "SparseAccumulatorTakeGradient",
    "handle: Ref(string), num_required: int32 -> indices: int64, values: dtype, shape: int64",
    "dtype: number",
    shape=lambda op: [UNKNOWN, UNKNOWN, UNKNOWN],
    **_WAITS,
)(_take_gradient)


not_differentiable("SparseConditionalAccumulator", "SparseAccumulatorTakeGradient")

# -- what users see ----------------------------------------------------------------------------------


def _int64(value: TensorLike) -> Tensor:
    tensor: Tensor = cast(to_tensor(value), dtypes.int64)
    return tensor


@export("ConditionalAccumulatorBase")
class ConditionalAccumulatorBase:
    """The base of the accumulators.

    A gradient is computed for a step, its `local_step`. The accumulator has a step of its own, raised by
    `set_global_step` and by each `take_grad`; gradients for earlier steps are dropped without an error.
    """

    def __init__(self, dtype: DTypeLike, shape: ShapeLike, accumulator_ref: Tensor) -> None:
        self._dtype = dtypes.as_dtype(dtype)
        self._shape = TensorShape(shape) if shape is not None else TensorShape(None)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.rpartition("/")[2]

    accumulator_ref = readonly("_accumulator_ref", "The handle.")
    name = readonly("_accumulator_ref.op.name", "The name of the operation that makes the accumulator.")
    dtype = readonly("_dtype", "The type of the gradients.")

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """How many gradients have been added since the last take."""
        name = name or f"{self._name}_NumAccumulated"
        return apply(self._op("AccumulatorNumAccumulated"), self._accumulator_ref, name=name)

    def set_global_step(self, new_global_step: TensorLike, name: str | None = None) -> Operation:
        """An operation that sets the accumulator's step."""
        return apply_op(
            self._op("AccumulatorSetGlobalStep"), self._accumulator_ref, _int64(new_global_step), name=name
        )

    def _op(self, base: str) -> str:
        return base if self._accumulator_ref.dtype._is_ref_dtype else f"Resource{base}"


@export("ConditionalAccumulator")
class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Adds up gradients until enough have come; gives their mean, or their sum with `reduction_type="SUM"`."""

    def __init__(
        self,
        dtype: DTypeLike,
        shape: ShapeLike = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        options = {"shared_name": shared_name, "reduction_type": reduction_type, "name": name}
        ref = apply("ResourceConditionalAccumulator", dtype=dtype, shape=TensorShape(shape), **options)
        super().__init__(dtype, shape, ref)

    def apply_grad(self, grad: TensorLike, local_step: TensorLike = 0, name: str | None = None) -> Operation:
        """An operation that adds `grad`, unless it was computed for a step that is over."""
        grad = to_tensor(grad, self._dtype)
        grad.shape.assert_is_compatible_with(self._shape)
        return apply_op(
            self._op("AccumulatorApplyGradient"), self._accumulator_ref, _int64(local_step), grad, name=name
        )

    def take_grad(self, num_required: TensorLike, name: str | None = None) -> Tensor:
        """The mean (or sum) of the gradients added; the operation waits until there are `num_required`."""
        kind, ref = self._op("AccumulatorTakeGradient"), self._accumulator_ref
        out = apply(kind, ref, num_required, dtype=self._dtype, name=name)
        out.set_shape(self._shape)
        return out


class SparseAccumulatorTakeGradient(NamedTuple):
    """The gradient of some rows, as `take_grad` gives it."""

    indices: Tensor
    values: Tensor
    shape: Tensor


@export("SparseConditionalAccumulator", "sparse.SparseConditionalAccumulator")
class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Adds up gradients that are given for some rows only; the mean of a row is over those that had it."""

    def __init__(
        self,
        dtype: DTypeLike,
        shape: ShapeLike = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        options = {"shared_name": shared_name, "reduction_type": reduction_type, "name": name}
        ref = apply("SparseConditionalAccumulator", dtype=dtype, shape=TensorShape(shape), **options)
        super().__init__(dtype, shape, ref)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: TensorLike = 0, name: str | None = None
    ) -> Operation:
        """An operation that adds a `tf.IndexedSlices`, unless it was computed for a step that is over."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: TensorLike,
        grad_values: TensorLike,
        grad_shape: TensorLike = None,
        local_step: TensorLike = 0,
        name: str | None = None,
    ) -> Operation:
        """An operation that adds `grad_values` for the rows `grad_indices`."""
        return apply_op(
            "SparseAccumulatorApplyGradient",
            self._accumulator_ref,
            _int64(local_step),
            cast(grad_indices, dtypes.int64),
            grad_values,
            cast([] if grad_shape is None else grad_shape, dtypes.int64),
            dtype=self._dtype,
            has_known_shape=grad_shape is not None,
            name=name,
        )

    def take_grad(self, num_required: TensorLike, name: str | None = None) -> SparseAccumulatorTakeGradient:
        """The rows, their mean (or sum) and the dense shape, once `num_required` gradients have come."""
        kind, ref = "SparseAccumulatorTakeGradient", self._accumulator_ref
        taken = apply_list(kind, ref, num_required, dtype=self._dtype, name=name)
        return SparseAccumulatorTakeGradient(*taken)

    def take_indexed_slices_grad(self, num_required: TensorLike, name: str | None = None) -> IndexedSlices:
        """Like `take_grad`, as `tf.IndexedSlices`."""
        taken = self.take_grad(num_required, name)
        return IndexedSlices(values=taken.values, indices=taken.indices, dense_shape=taken.shape)
