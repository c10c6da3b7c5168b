"""Softmax, and the losses of classification and counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_list
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.argument_order import takes_old_order
from tensorfleet.ops.array.basic import with_dependencies
from tensorfleet.ops.array.checks import assert_equal
from tensorfleet.ops.array.constructors import ones_like, zeros_like
from tensorfleet.ops.array.shape import rank, shape
from tensorfleet.ops.common import first_bad
from tensorfleet.ops.elementwise import REAL, bracketed, wide
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.nn.shapes import of_rank, of_rank_at_least, same_dimension
from tensorfleet.ops.samples import case

_LOGITS = [case(REAL), case(REAL.astype(np.float64).reshape(1, 2, 3)), case(REAL[0]), case(REAL[:0])]


def _of_rank_one_or_more(op: Operation) -> TensorShape:
    return of_rank_at_least(op._inputs[0].shape, 1)


def _exponentials(xp: ArrayModule, x: Array) -> tuple[Any, Any, Any]:
    """(logits less their largest, the exponentials of those, the sums of these), along the last axis."""
    if x.shape[-1] == 0:
        return x, x, xp.ones((*x.shape[:-1], 1), x.dtype)
    shifted = x - x.max(-1, keepdims=True)
    e = xp.exp(shifted)
    return shifted, e, e.sum(-1, keepdims=True)


def _need_dimension(x: Array) -> None:
    if x.ndim < 1:
        raise errors.invalid(f"logits must have >= 1 dimension, got {bracketed(x.shape)}")


@op("Softmax", "logits: T -> softmax: T", "T: floating", shape=_of_rank_one_or_more, examples=_LOGITS)
def _softmax(xp: ArrayModule, x: Array) -> Array:
    _need_dimension(x)
    _, e, total = _exponentials(xp, wide(x))
    result: Array = (e / total).astype(x.dtype)
    return result


@gradient("Softmax")
def _softmax_gradient(op: Operation, dy: Tensor) -> Tensor:
    y = op.outputs[0]
    total = apply("Sum", apply("Mul", dy, y, name="mul"), np.int32(-1), keep_dims=True)
    return apply("Mul", apply("Sub", dy, total, name="sub"), y, name="mul")


@op("LogSoftmax", "logits: T -> logsoftmax: T", "T: floating", shape=_of_rank_one_or_more, examples=_LOGITS)
def _log_softmax(xp: ArrayModule, x: Array) -> Array:
    _need_dimension(x)
    shifted, _, total = _exponentials(xp, wide(x))
    result: Array = (shifted - xp.log(total)).astype(x.dtype)
    return result


@gradient("LogSoftmax")
def _log_softmax_gradient(op: Operation, dy: Tensor) -> Tensor:
    y = apply("Exp", op.outputs[0])
    total = apply("Sum", dy, np.int32(-1), keep_dims=True)
    return apply("Sub", dy, apply("Mul", total, y, name="mul"), name="sub")


@export("nn.softmax", "math.softmax")
def softmax(
    logits: TensorLike, axis: TensorLike = None, name: str | None = None, dim: TensorLike = None
) -> Tensor:
    """Exponentials of `logits` that sum to one along `axis` (the last by default)."""
    return _along("Softmax", logits, _one_of(axis, dim), name)


@export("nn.log_softmax", "math.log_softmax")
def log_softmax(
    logits: TensorLike, axis: TensorLike = None, name: str | None = None, dim: TensorLike = None
) -> Tensor:
    """The logarithm of `tf.nn.softmax`, without its loss of precision."""
    return _along("LogSoftmax", logits, _one_of(axis, dim), name)


def _one_of(axis: TensorLike, dim: TensorLike, default: int = -1) -> Any:
    if dim is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'dim' and 'axis'.")
        axis = dim
    return default if axis is None else axis


def _along(kind: str, logits: TensorLike, dim: Any, name: str | None) -> Tensor:
    x = to_tensor(logits)
    dims = x.shape.rank
    if not isinstance(dim, Tensor) and dim in (-1, None if dims is None else dims - 1):
        return apply(kind, x, name=name)
    known = constant_value(dim) if isinstance(dim, Tensor) else dim
    if dims is not None and known is not None and not -dims <= known < dims:
        raise errors.invalid(
            f"Dimension ({known}) must be in the range [{-dims}, {dims}) where {dims} is the number of "
            "dimensions in the input."
        )
    # Twice, as TensorFlow does: the names of the ops that follow count from it, and saved graphs contain them.
    rank(x)
    whole = rank(x)
    position = apply("FloorMod", dim, whole) if dims is None or known is None else int(known) % dims
    moved = apply_any(kind, _swapped(x, position, whole))
    result = _swapped(moved, position, whole, name)
    result.set_shape(x.shape)
    return result


def _swapped(x: Tensor, dim: Any, whole: Tensor, name: str | None = "transpose") -> Tensor:
    """`x` with axis `dim` and the last exchanged."""
    last = apply("Sub", whole, 1, name="Sub")
    order = _joined([_span(0, dim), [last], _span(dim + 1, last), [dim]])
    return apply("Transpose", x, order, name=name or "transpose")


def _span(start: TensorLike, limit: TensorLike) -> Tensor:
    return apply("Range", start, limit, 1, name="range")


def _joined(parts: list[Any]) -> Tensor:
    return apply("ConcatV2", parts, 0, name="concat")


# -- cross entropy -----------------------------------------------------------------------------------


def _cross_entropy_shapes(op: Operation) -> list[TensorShape]:
    both = broadcast_shape(of_rank(op._inputs[0].shape, 2), of_rank(op._inputs[1].shape, 2))
    return [TensorShape._of((both.as_list()[0],)), both]


_TARGETS = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]], np.float32)


@op(
    "SoftmaxCrossEntropyWithLogits",
    "features: T, labels: T -> loss: T, backprop: T",
    "T: floating",
    shape=_cross_entropy_shapes,
    examples=[
        case(REAL, _TARGETS),
        case(REAL.astype(np.float64), _TARGETS[:1].astype(np.float64), grad=False),
    ],
)
def _softmax_cross_entropy(xp: ArrayModule, logits: Array, labels: Array) -> tuple[Array, Array]:
    try:
        np.broadcast_shapes(logits.shape, labels.shape)
    except ValueError:
        raise errors.invalid(
            f"logits and labels must be broadcastable: logits_size={bracketed(logits.shape)} "
            f"labels_size={bracketed(labels.shape)}"
        ) from None
    x, target = wide(logits), wide(labels)
    shifted, e, total = _exponentials(xp, x)
    loss = (target * (xp.log(total) - shifted)).sum(-1)
    return loss.astype(logits.dtype), (e / total - target).astype(logits.dtype)


@gradient("SoftmaxCrossEntropyWithLogits")
def _softmax_cross_entropy_gradient(
    op: Operation, dloss: Tensor | None, dbackprop: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    logits = op.inputs[0]
    dx = _through_logits(op, dloss, dbackprop)
    if dloss is None:
        return dx, None
    minus_log = apply("Neg", apply("LogSoftmax", logits))
    return dx, _times_rows(dloss, minus_log)


def _times_rows(vector: Tensor, matrix: Tensor) -> Tensor:
    return apply("Mul", apply("ExpandDims", vector, -1), matrix, name="mul")


def _through_logits(op: Operation, dloss: Tensor | None, dbackprop: Tensor | None) -> Tensor | None:
    """The gradient of the logits: the op's second output, and what flows back through that output itself."""
    first = None if dloss is None or _is_zero(dloss) else _times_rows(dloss, op.outputs[1])
    if _is_zero(dbackprop):
        return first
    y = apply("Softmax", op.inputs[0])
    common = apply("BatchMatMul", apply("ExpandDims", dbackprop, 1), apply("ExpandDims", y, 2))
    centred = apply("Sub", dbackprop, apply("Squeeze", common, squeeze_dims=[1]), name="sub")
    second = apply("Mul", centred, y, name="mul")
    return second if first is None else apply("AddV2", first, second, name="add")


def _is_zero(grad: Tensor | None) -> bool:
    """Whether nothing flows back here: no gradient, or zeros made for want of one."""
    if grad is None:
        return True
    if grad.op.type in ("ZerosLike", "Zeros"):
        return True
    return grad.op.type == "Const" and not np.any(grad.op._attrs["value"])


_softmax_cross_entropy_gradient.accepts_none = True  # type: ignore[attr-defined]


def _sparse_cross_entropy_shapes(op: Operation) -> list[TensorShape]:
    (rows, classes), (labels,) = (
        of_rank(op._inputs[0].shape, 2).as_list(),
        of_rank(op._inputs[1].shape, 1).as_list(),
    )
    rows = same_dimension(rows, labels)
    return [TensorShape._of((rows,)), TensorShape._of((rows, classes))]


@op(
    "SparseSoftmaxCrossEntropyWithLogits",
    "features: T, labels: Tlabels -> loss: T, backprop: T",
    "T: floating; Tlabels: index = int64",
    shape=_sparse_cross_entropy_shapes,
    examples=[case(REAL, np.array([2, 0], np.int32)), case(REAL.astype(np.float64), np.array([1, 1]))],
)
def _sparse_softmax_cross_entropy(
    xp: ArrayModule, logits: Array, labels: Array, *, check: Check
) -> tuple[Array, Array]:
    if labels.ndim != 1:
        text = f"labels must be 1-D, but got shape {bracketed(labels.shape)}"
        raise errors.InvalidArgumentError(None, None, text)
    if logits.shape[:1] != labels.shape or logits.ndim != 2:
        raise errors.invalid(
            "logits and labels must have the same first dimension, got logits shape "
            f"{bracketed(logits.shape)} and labels shape {bracketed(labels.shape)}"
        )
    classes = logits.shape[1]
    ok = (labels >= 0) & (labels < classes)
    check(ok, lambda: _bad_label(ok, labels, classes))
    x = wide(logits)
    shifted, e, total = _exponentials(xp, x)
    chosen = labels[:, None] == np.arange(classes, dtype=labels.dtype)
    loss = xp.log(total)[:, 0] - xp.where(chosen, shifted, x.dtype.type(0)).sum(-1)
    return loss.astype(logits.dtype), (e / total - chosen.astype(x.dtype)).astype(logits.dtype)


def _bad_label(ok: Array, labels: Array, classes: int) -> str:
    _, value = first_bad(ok, labels)
    return (
        f"Received a label value of {value} which is outside the valid range of [0, {classes}).  "
        f"Label values: {' '.join(map(str, np.asarray(labels).tolist()))}"
    )


@gradient("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_softmax_cross_entropy_gradient(
    op: Operation, dloss: Tensor | None, dbackprop: Tensor | None
) -> tuple[Tensor | None, None]:
    return _through_logits(op, dloss, dbackprop), None


_sparse_softmax_cross_entropy_gradient.accepts_none = True  # type: ignore[attr-defined]


def _first_is_given(*args: Array) -> bool:
    """Since 1.0 the first place is of `_sentinel`, which nobody gives."""
    return args[0] is not None


def _check_named(
    function: str,
    sentinel: TensorLike,
    labels: TensorLike,
    logits: TensorLike,
) -> None:
    if sentinel is not None:
        raise ValueError(f"Only call `{function}` with named arguments (labels=..., logits=..., ...)")
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")


@export("nn.softmax_cross_entropy_with_logits")
@takes_old_order("nn.softmax_cross_entropy_with_logits", "logits labels dim name", _first_is_given)
def softmax_cross_entropy_with_logits(
    _sentinel: TensorLike = None,
    labels: TensorLike = None,
    logits: TensorLike = None,
    dim: TensorLike = -1,
    name: str | None = None,
    axis: TensorLike = None,
) -> Tensor:
    """The cross entropy between rows of probabilities `labels` and the softmax of `logits`.

    No gradient flows into `labels`; `softmax_cross_entropy_with_logits_v2` lets it.
    """
    _check_named("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    along = dim if axis is None else axis
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        fixed = apply("StopGradient", labels, name="labels_stop_gradient")
        return softmax_cross_entropy_with_logits_v2(fixed, logits, axis=along, name=scope)


@export("nn.softmax_cross_entropy_with_logits_v2")
def softmax_cross_entropy_with_logits_v2(
    labels: TensorLike,
    logits: TensorLike,
    axis: TensorLike = None,
    name: str | None = None,
    dim: TensorLike = None,
) -> Tensor:
    """The cross entropy between probabilities `labels` and the softmax of `logits` along `axis`."""
    along = _one_of(axis, dim)
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        given = to_tensor(logits, name="logits")
        target = to_tensor(labels, name="labels")
        narrow = given.dtype.base_dtype in (dtypes.float16, dtypes.bfloat16)
        x = cast(given, dtypes.float32) if narrow else given
        target = cast(target, x.dtype.base_dtype)
        whole, known = rank(x), x.shape
        if along != -1:
            x, target = _to_end(x, along, whole), _to_end(target, along, whole)
        dims = shape(x)
        loss, _ = apply_list("SoftmaxCrossEntropyWithLogits", _as_matrix(x), _as_matrix(target), name=scope)
        loss = apply("Reshape", loss, apply("Slice", dims, [0], [apply("Sub", whole, 1, name="Sub")]))
        if known.rank is not None:
            kept = known.as_list()
            del kept[along]
            loss.set_shape(kept)
        return cast(loss, given.dtype.base_dtype) if narrow else loss


def _to_end(x: Tensor, dim: Any, whole: Tensor) -> Tensor:
    """`x` with axis `dim` moved behind all others."""
    order = _joined([_span(0, dim), _span(dim + 1, whole), [dim]])
    return apply("Transpose", x, order, name="transpose")


def _as_matrix(x: Tensor) -> Tensor:
    """`x` with all axes but the last made one."""
    whole = rank(x)
    last = apply("Slice", shape(x), [apply("Sub", whole, 1, name="Sub")], [1])
    flat = apply("Reshape", x, _joined([[-1], last]))
    if x.shape.rank is not None:
        flat.set_shape([x.shape[:-1].num_elements(), x.shape[-1]])
    return flat


@export("nn.sparse_softmax_cross_entropy_with_logits")
@takes_old_order("nn.sparse_softmax_cross_entropy_with_logits", "logits labels name", _first_is_given)
def sparse_softmax_cross_entropy_with_logits(
    _sentinel: TensorLike = None,
    labels: TensorLike = None,
    logits: TensorLike = None,
    name: str | None = None,
) -> Tensor:
    """The cross entropy between the classes `labels` and the softmax of `logits`."""
    _check_named("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    inner = "SparseSoftmaxCrossEntropyWithLogits"
    with name_scope(name, inner, [labels, logits]):
        target, given = to_tensor(labels), to_tensor(logits)
        narrow = given.dtype.base_dtype in (dtypes.float16, dtypes.bfloat16)
        x = cast(given, dtypes.float32) if narrow else given
        loss_shape = shape(target)
        _check_label_shape(target.shape, x.shape)
        if x.shape.rank == 2:
            loss, _ = apply_any(inner, x, target, name=inner)
        else:
            loss, _ = apply_any(inner, *_flattened(x, target), name=inner)
            loss = apply("Reshape", loss, loss_shape)
            loss.set_shape(target.shape)
        result: Tensor = cast(loss, given.dtype.base_dtype) if narrow else loss
        return result


def _check_label_shape(labels: TensorShape, logits: TensorShape) -> None:
    if logits.rank == 0:
        raise ValueError(f"Logits cannot be scalars - received shape {logits}.")
    if None in (labels.rank, logits.rank):
        return
    assert logits.rank is not None
    if labels.rank != logits.rank - 1:
        raise ValueError(
            f"Rank mismatch: Rank of labels (received {labels.rank}) should equal rank of logits minus 1 "
            f"(received {logits.rank})."
        )
    if not labels.is_compatible_with(logits[:-1]):
        raise ValueError(
            f"Shape mismatch: The shape of labels (received {labels}) should equal the shape of logits "
            f"except for the last dimension (received {logits})."
        )


def _flattened(x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Logits as a matrix and labels as a vector, once their shapes are known to fit."""
    known = labels.shape.is_fully_defined() and x.shape.rank is not None and x.shape[:-1].is_fully_defined()
    if not known:
        fits = assert_equal(shape(labels), shape(x)[:-1])
        x = with_dependencies([fits], x)
    classes = shape(x)[rank(x) - 1]
    return apply("Reshape", x, [-1, classes]), apply("Reshape", labels, [-1])


# -- other losses ------------------------------------------------------------------------------------


def _same_shapes(a: str, x: Tensor, b: str, y: Tensor) -> None:
    try:
        y.shape.merge_with(x.shape)
    except ValueError:
        raise ValueError(f"{a} and {b} must have the same shape ({x.shape} vs {y.shape})") from None


@export("nn.sigmoid_cross_entropy_with_logits")
@takes_old_order(
    "nn.sigmoid_cross_entropy_with_logits", "logits labels name", _first_is_given, {"targets": "labels"}
)
def sigmoid_cross_entropy_with_logits(
    _sentinel: TensorLike = None,
    labels: TensorLike = None,
    logits: TensorLike = None,
    name: str | None = None,
) -> Tensor:
    """The cross entropy of independent yes-or-no decisions with probabilities `sigmoid(logits)`."""
    _check_named("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        x, z = to_tensor(logits, name="logits"), to_tensor(labels, name="labels")
        _same_shapes("logits", x, "labels", z)
        # max(x, 0) and -|x| by the same comparison, so that the gradient at zero is right
        zeros = zeros_like(x, dtype=x.dtype)
        positive = apply("GreaterEqual", x, zeros)
        relu_x = apply("Select", positive, x, zeros)
        minus_abs = apply("Select", positive, apply("Neg", x), x)
        return apply("AddV2", relu_x - x * z, apply("Log1p", apply("Exp", minus_abs)), name=scope)


@export("nn.weighted_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(
    labels: TensorLike = None,
    logits: TensorLike = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: TensorLike = None,
) -> Tensor:
    """`sigmoid_cross_entropy_with_logits` with positive labels counting `pos_weight` times."""
    if targets is not None:
        if labels is not None:
            raise ValueError("Cannot specify both 'labels' and 'targets'")
        labels = targets
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        x, z = to_tensor(logits, name="logits"), to_tensor(labels, name="labels")
        _same_shapes("logits", x, "targets", z)
        weight = 1 + (pos_weight - 1) * z
        negative = (1 - z) * x
        soft = apply("Log1p", apply("Exp", apply("Neg", apply("Abs", x))))
        return apply("AddV2", negative, weight * (soft + apply("Relu", apply("Neg", x))), name=scope)


@export("nn.log_poisson_loss")
def log_poisson_loss(
    targets: TensorLike, log_input: TensorLike, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """The negative log-likelihood of counts under a Poisson distribution with rate `exp(log_input)`.

    With `compute_full_loss`, plus Stirling's approximation of the term that depends on the counts alone.
    """
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        x, z = to_tensor(log_input, name="log_input"), to_tensor(targets, name="targets")
        _same_shapes("log_input", x, "targets", z)
        loss = apply("Exp", x) - x * z
        if not compute_full_loss:
            return loss
        half, turn = to_tensor(0.5, z.dtype), to_tensor(2 * np.pi, z.dtype)
        stirling = z * apply("Log", z) - z + half * apply("Log", turn * z)
        zeros, ones = zeros_like(z, dtype=z.dtype), ones_like(z, dtype=z.dtype)
        small = apply("LogicalAnd", apply("GreaterEqual", z, zeros), apply("LessEqual", z, ones))
        return loss + apply("Select", small, zeros, stirling)
