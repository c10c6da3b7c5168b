"""Order: the largest k, sorting, and looking values up in sorted sequences."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.parallel_for import in_parts
from tensorfleet.ops.array.shape import invalid, reshape
from tensorfleet.ops.array.shape import rank as rank_of
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.common import UNKNOWN, static_scalar, vector_of
from tensorfleet.ops.samples import case

_X = np.array([[3, 1, 2], [5, 7, 6]], np.float32)
_REAL = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"


def _top_k_shape(op: Operation) -> TensorShape:
    dims = op._inputs[0].shape._d
    k = static_scalar(op, 1)
    if k is not None and k < 0:
        raise ValueError(f"Dimension size, given by scalar input 1, must be non-negative but is {k}")
    if dims is None:
        return UNKNOWN
    if not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if k is not None and dims[-1] is not None and dims[-1] < k:
        raise ValueError(f"input must have last dimension >= k = {k} but is {dims[-1]}")
    return TensorShape._of((*dims[:-1], k))


_FIRST_BLOCK_ELEMENTS = (
    64  # elements that are compared at once with the least of the largest; later blocks are longer
)
_MAX_HEAP_ELEMENTS = (
    1 << 15
)  # more are given in order, which is allowed too: numpy's sorting is faster than our heaps
_MAX_XLA_TOP_K = 32  # up to so many, or so small a part of all, XLA's own top_k is the faster


def _packs(x: Array, k: int) -> bool:
    """Whether an element and its position fit into one 64-bit integer, and sorting these pays."""
    kind = np.dtype(x.dtype)
    return k > max(_MAX_XLA_TOP_K, x.shape[-1] // 64) and kind.itemsize <= 4 and kind.kind in "iuf"


def _by_packed_sort(xp: ArrayModule, x: Array, k: int) -> tuple[Array, Array]:
    """The largest k by sorting integers that hold an element, turned around, and its position.

    XLA sorts whole integers several times as fast as floats, or pairs.
    """
    from tensorfleet.kernels.xla import lax

    narrow = x.dtype
    floats = np.dtype(narrow).kind == "f"
    low = np.int32(np.iinfo(np.int32).max)
    if floats:
        wide_x = x.astype(np.float32)
        wide_x = xp.where(wide_x == 0, np.float32(0), wide_x)  # a negative zero is as good as zero
        bits = lax.bitcast_convert_type(wide_x, np.int32)
        keys = xp.where(bits < 0, bits ^ low, bits).astype(np.int64)
    else:
        keys = x.astype(np.int64)
    places = xp.arange(x.shape[-1], dtype=np.int64)
    packed = lax.sort(~keys * np.int64(1 << 32) + places, is_stable=False)[..., :k]
    largest = ~(packed >> np.int64(32))
    if not floats:
        return largest.astype(narrow), packed & np.int64(0xFFFFFFFF)
    bits = largest.astype(np.int32)
    bits = xp.where(bits < 0, bits ^ low, bits)
    return lax.bitcast_convert_type(bits, np.float32).astype(narrow), packed & np.int64(0xFFFFFFFF)


def _left_in_heaps(x: Array, k: int) -> Array:
    """Where the largest k are, in the order in which TensorFlow leaves them: that of the heap that collects them."""
    rows = x.reshape(-1, x.shape[-1])
    picked = np.empty((len(rows), k), np.int64)
    for i, row in enumerate(rows):
        picked[i] = [-place for _, place in _heap(row, k)]
    return picked.reshape(*x.shape[:-1], k)


def _heap(row: Array, k: int) -> list[tuple[Any, int]]:
    """The largest k and their places, counted downward: of equal elements the first is the largest."""
    heap = [(v, -i) for i, v in enumerate(row[: k + 1].tolist())]
    heapq.heapify(heap)
    heapq.heappop(heap)
    start, length = k + 1, _FIRST_BLOCK_ELEMENTS
    while start < len(row):
        block = row[start : start + length]
        places = np.flatnonzero(block > heap[0][0])  # few: the others are not among the largest so far
        for place, value in zip((places + start).tolist(), block[places].tolist(), strict=True):
            if value > heap[0][0]:
                heapq.heappop(heap)
                heapq.heappush(heap, (value, -place))
        start, length = start + length, 2 * length
    return heap


@op(
    "TopKV2",
    "input: T[1+], k: Tk -> values: T, indices: index_type",
    f"sorted: bool = true; T: {_REAL}; Tk: {{int16, int32, int64}} = int32; "
    "index_type: {int16, int32, int64} = int32",
    shape=_top_k_shape,
    static=["k"],
    in_numpy=lambda op: not op._attrs["sorted"],
    examples=[
        case(_X, np.int32(2)),
        case(np.array([2, 5, 5, 1], np.int64), np.int32(3)),
        case(_X, np.int32(0), grad=False),
        case(np.array([[0.5, -2, np.inf, -np.inf, 0, -0.0, 7] * 8], np.float32), np.int32(40), grad=False),
        case(np.array([3, -4, 2**31 - 1, -(2**31)] * 10, np.int32), np.int32(35)),
        case(np.array([3, 200, 255, 0] * 10, np.uint8), np.int32(35)),
        case(np.array([1, -0.0, 0, -2], np.float16), np.int32(3), grad=False),
    ],
)
def _top_k_v2(
    xp: ArrayModule, x: Array, number: Array, *, sorted: bool, index_type: DType
) -> tuple[Array, Array]:
    k, kind = int(number), index_type.np_dtype
    if not x.shape:
        raise invalid("input must be >= 1-D, got shape []")
    if k < 0:
        raise invalid(f"Need k >= 0, got {k}")
    if k > x.shape[-1]:
        raise invalid(f"input must have at least k columns. Had {x.shape[-1]}, needed {k}")
    if not is_numpy(xp):
        from tensorfleet.kernels.xla import lax

        if k == 1:
            indices = xp.argmax(x, axis=-1, keepdims=True)
            values = xp.max(x, axis=-1, keepdims=True)
        elif _packs(x, k):
            values, indices = _by_packed_sort(xp, x, k)
        else:  # of two zeros the first comes first, whatever their signs
            values, indices = lax.top_k(xp.where(x == 0, xp.zeros_like(x), x), k)
        return values, indices.astype(kind)
    if k == 1:
        picked = x.argmax(-1, keepdims=True)
        return np.take_along_axis(x, picked, axis=-1), picked.astype(kind)
    if not sorted and 1 < k < x.shape[-1] and x.size // x.shape[-1] * k <= _MAX_HEAP_ELEMENTS:
        picked = _left_in_heaps(x, k)
        return np.take_along_axis(x, picked, axis=-1), picked.astype(kind)
    # Sorted backward, so that of equal elements the first comes first.
    order = x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    picked = order[..., :k]
    return np.take_along_axis(x, picked, axis=-1), picked.astype(kind)


@gradient("TopKV2")
def _top_k_grad(op: Operation, dy: Tensor, _: Tensor) -> tuple[Tensor, None]:
    x, picked = op._inputs[0], op._outputs[1]
    size, k = shape_of(x), shape_of(picked)[-1]
    columns = size[-1]
    rows = apply("Reshape", picked, [-1, k])
    starts = apply("Range", 0, shape_of(rows)[0] * columns, columns)
    flat = apply("Reshape", rows + apply("ExpandDims", starts, -1), [-1, 1])
    count = apply("Reshape", apply("Prod", size, [0]), [1])
    dx = apply("ScatterNd", flat, apply("Reshape", dy, [-1]), count)
    return apply("Reshape", dx, size), None


class TopKV2(NamedTuple):
    """What `tf.nn.top_k` gives."""

    values: Tensor
    indices: Tensor


@export("nn.top_k", "math.top_k")
def top_k(input: TensorLike, k: TensorLike = 1, sorted: bool = True, name: str | None = None) -> TopKV2:
    """The `k` largest entries of the last dimension, and where they are."""
    return TopKV2(*apply_list("TopKV2", input, k, sorted=sorted, name=name))


def _in_top_k_shape(op: Operation) -> TensorShape:
    rows = op._inputs[0].shape.with_rank(2)._d
    return vector_of(rows[0] if rows else None).merge_with(op._inputs[1].shape)


_ELEMENTS_PER_THREAD = 1 << 18  # elements that one of several threads goes through
_FITS_BYTE, _SQUARE_FITS = 255, 46_341


def _in_top_k(xp: ArrayModule, predictions: Array, targets: Array, k: Array | int) -> Array:
    if len(predictions) != len(targets):
        raise errors.invalid(
            f"First dimension of predictions {len(predictions)} must match length of targets {len(targets)}"
        )
    classes = predictions.shape[1]
    if classes == 0:
        return xp.zeros(len(targets), bool)
    known = (targets >= 0) & (targets < classes)
    at = xp.clip(targets, 0, max(classes - 1, 0))
    mine = xp.take_along_axis(predictions, at[:, None], axis=1)
    if is_numpy(xp):
        among = np.empty(len(targets), bool)
        work = lambda a, b: _among(predictions[a:b], mine[a:b], k, among[a:b])  # noqa: E731
        in_parts(work, len(targets), -(-_ELEMENTS_PER_THREAD // classes))
        hits: Array = known & among
        return hits
    # One sum tells both: with a number that is not finite there are more above than there can be.
    kind: Any = np.int32 if classes < _SQUARE_FITS else np.int64
    above = xp.where(xp.isfinite(predictions), (predictions > mine).astype(kind), kind(classes)).sum(axis=1)
    result: Array = known & (above < classes) & (above < k)
    return result


def _among(predictions: Array, mine: Array, k: Array | int, among: Array) -> None:
    """Notes for each row whether all are finite and fewer than `k` are above one of them."""
    larger = (predictions > mine).view(np.uint8)
    above = np.zeros(len(predictions), np.int64)
    for start in range(0, larger.shape[1], _FITS_BYTE):  # sums of bytes use whole registers
        above += np.add.reduce(larger[:, start : start + _FITS_BYTE], axis=1, dtype=np.uint8)
    np.less(above, k, out=among)
    finite = np.isfinite(predictions)
    if not finite.all():
        among &= finite.all(axis=1)


_TARGETS = np.array([0, 2], np.int32)


@op(
    "InTopKV2",
    "predictions: float[2], targets: T[1], k: T -> precision: bool",
    "T: index = int32",
    shape=_in_top_k_shape,
    examples=[case(_X, _TARGETS, np.int32(1)), case(_X, np.array([9, 0]), np.int64(3))],
)
def _in_top_k_v2(xp: ArrayModule, predictions: Array, targets: Array, k: Array) -> Array:
    return _in_top_k(xp, predictions, targets, k)


@op(
    "InTopK",
    "predictions: float[2], targets: T[1] -> precision: bool",
    "k: int; T: index = int32",
    shape=_in_top_k_shape,
    examples=[case(_X, _TARGETS, k=2)],
)
def _in_top_k_v1(xp: ArrayModule, predictions: Array, targets: Array, *, k: int) -> Array:
    return _in_top_k(xp, predictions, targets, k)


not_differentiable("InTopK", "InTopKV2")


@export("nn.in_top_k", "math.in_top_k")
def in_top_k(predictions: TensorLike, targets: TensorLike, k: TensorLike, name: str | None = None) -> Tensor:
    """For each row, whether the target class is among the `k` highest predictions."""
    with name_scope(name, "in_top_k"):
        return apply("InTopKV2", predictions, targets, k)


# -- sort --------------------------------------------------------------------------------------------


@export("sort")
def sort(values: TensorLike, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The values in order along `axis`; `direction` is "ASCENDING" or "DESCENDING"."""
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, positions=False)


@export("argsort")
def argsort(
    values: TensorLike,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """The positions that would put the values in order along `axis`."""
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, positions=True)


def _sorted(values: TensorLike, axis: int, direction: str, positions: bool) -> Tensor:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"{direction} should be one of ASCENDING, DESCENDING")
    at = constant_value(to_tensor(axis, name="axis"))
    if at is None or at.ndim:
        raise ValueError("axis must be a constant scalar")
    values = to_tensor(values, name="values")
    if direction == "DESCENDING":
        return _descending(values, int(at), positions)
    # Turning the order around: a bitwise complement for integers, whose smallest value has no negative.
    kind = values.dtype.base_dtype
    if kind.is_integer and kind.name.startswith("u"):
        turn: Callable[[Tensor], Tensor] = lambda v: apply("Sub", np.array(kind.max, kind.np_dtype), v)  # noqa: E731
    elif kind.is_integer:
        turn = lambda v: apply("Neg", v) - 1  # noqa: E731
    else:
        turn = lambda v: apply("Neg", v)  # noqa: E731
    ordered = _descending(turn(values), int(at), positions)
    return ordered if positions else turn(ordered)


def _descending(values: Tensor, axis: int, positions: bool) -> Tensor:
    k = shape_of(values)[axis]
    rank = values.shape.rank
    if axis == -1 or axis + 1 == rank:
        last = apply_list("TopKV2", values, k)[int(positions)]
        last.set_shape(values.shape)
        return last
    if rank is not None and not -rank <= axis < rank:
        raise ValueError(f"axis = {axis} not in [{-rank}, {rank})")
    swap = _swap_with_last(values, axis)
    top = apply_list("TopKV2", apply("Transpose", values, swap, name="transpose"), k)
    result = apply("Transpose", top[int(positions)], swap, name="transpose")
    result.set_shape(values.shape)
    return result


def _swap_with_last(values: Tensor, axis: int) -> Tensor:
    """The order of dimensions in which an axis and the last have changed places."""
    if values.shape.rank is not None:
        known = list(range(values.shape.rank))
        known[axis], known[-1] = known[-1], known[axis]
        return to_tensor(np.array(known, np.int32), name="transposition")
    last = rank_of(values) - 1
    at = axis if axis >= 0 else last + 1 + axis
    order = apply("Range", 0, last + 1, 1)
    here, there = (apply("Cast", apply("Equal", order, place), DstT=dtypes.int32) for place in (at, last))
    return order + (last - at) * (here - there)


# -- searchsorted ------------------------------------------------------------------------------------


def _search(
    xp: ArrayModule, rows: Array, values: Array, side: Literal["left", "right"], kind: np.dtype[Any]
) -> Array:
    if rows.shape[0] != values.shape[0]:
        raise invalid("Leading dim_size of both tensors must match.")
    if is_numpy(xp):
        positions = [np.searchsorted(r, v, side) for r, v in zip(rows, values, strict=True)]
        return np.array(positions, kind).reshape(values.shape)
    import jax

    return jax.vmap(lambda r, v: xp.searchsorted(r, v, side=side))(rows, values).astype(kind)


_SORTED = np.array([[1, 3, 5], [2, 4, 6]], np.float32)
_ASKED = np.array([[0, 3], [4, 9]], np.float32)


def _bound(name: str, side: Literal["left", "right"]) -> None:
    @op(
        name,
        "sorted_inputs: T[2], values: T[2] -> output: out_type",
        "T: type; out_type: index = int32",
        shape=lambda op: op._inputs[1].shape.with_rank(2),
        examples=[
            case(_SORTED, _ASKED),
            case(_SORTED.astype(np.int64), _ASKED.astype(np.int64), out_type="int64"),
        ],
    )
    def _kernel(xp: ArrayModule, rows: Array, values: Array, *, out_type: DType) -> Array:
        return _search(xp, rows, values, side, out_type.np_dtype)

    not_differentiable(name)


_bound("LowerBound", "left")
_bound("UpperBound", "right")


@export("searchsorted")
def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: Literal["left", "right"] = "left",
    out_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Where each value would have to be inserted to keep the innermost rows sorted."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'.  Saw: {side}.")
    sorted_sequence, values = to_tensor(sorted_sequence), to_tensor(values)
    rows = reshape(sorted_sequence, [-1, shape_of(sorted_sequence)[-1]])
    asked = reshape(values, [-1, shape_of(values)[-1]])
    positions = apply(
        "LowerBound" if side == "left" else "UpperBound", rows, asked, out_type=out_type, name=name
    )
    return reshape(positions, shape_of(values))
