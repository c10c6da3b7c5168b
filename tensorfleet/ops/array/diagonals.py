"""Diagonals: of tensors, of batches of matrices, and bands around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, shape_text
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.kernels.arrays import is_numpy, zeros_of
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.array.shape import invalid
from tensorfleet.ops.common import UNKNOWN, ints, same_as_input, static_value
from tensorfleet.ops.samples import case

_V = np.array([1.0, 2.0, 3.0], np.float32)
_M = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
_K0 = np.int32(0)
_NO = np.int32(-1)


# -- Diag --------------------------------------------------------------------------------------------


def _twice(op: Operation) -> TensorShape:
    shape = op._inputs[0].shape
    if shape.rank == 0:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    return shape.concatenate(shape)


_DIAG_TYPES = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"


@op("Diag", "diagonal: T -> output: T", _DIAG_TYPES, shape=_twice, examples=[case(_V), case(_M[0])])
def _diag(xp: ArrayModule, x: Array) -> Array:
    n = int(np.prod(x.shape, dtype=np.int64))
    whole = xp.where(np.eye(n, dtype=bool), x.reshape((n, 1)), np.zeros((), x.dtype))
    return whole.reshape((*x.shape, *x.shape))


def _half(op: Operation) -> TensorShape:
    dims = op._inputs[0].shape._d
    if dims is None:
        return UNKNOWN
    if len(dims) % 2 or not dims:
        raise ValueError(f"Input must have even and non-zero rank, input rank is {len(dims)}")
    middle = len(dims) // 2
    for a, b in zip(dims[:middle], dims[middle:], strict=True):
        if None not in (a, b) and a != b:
            raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
    return TensorShape._of(dims[:middle]).merge_with(TensorShape._of(dims[middle:]))


@op(
    "DiagPart",
    "input: T -> diagonal: T",
    _DIAG_TYPES,
    shape=_half,
    examples=[case(np.arange(9.0).reshape(3, 3)), case(np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2))],
)
def _diag_part(xp: ArrayModule, x: Array) -> Array:
    half = x.shape[: len(x.shape) // 2]
    if half != x.shape[len(half) :]:
        raise invalid(f"Invalid shape, shape dimensions {half} and {x.shape[len(half) :]} do not match.")
    n = int(np.prod(half, dtype=np.int64))
    return xp.diagonal(x.reshape((n, n))).reshape(half)


@gradient("Diag")
def _diag_grad(op: Operation, dy: Tensor) -> Tensor:
    return apply("DiagPart", dy)


gradient("DiagPart")(lambda op, dy: apply("Diag", dy))


@export("diag", "linalg.tensor_diag")
def diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of twice the rank, zero but for `diagonal` where both halves of the index agree."""
    return apply("Diag", diagonal, name=name)


@export("diag_part", "linalg.tensor_diag_part")
def diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """The elements of a tensor of even rank where both halves of the index agree."""
    return apply("DiagPart", input, name=name)


# -- diagonals of matrices ---------------------------------------------------------------------------


class Band:
    """Diagonals `low` to `high` of a rows x columns matrix, and how they lie in a packed array."""

    def __init__(self, k: Array | int, size: tuple[int, int], align: bytes) -> None:
        low, *rest = ints(k)
        self.low, self.high = low, rest[0] if rest else low
        if self.low > self.high:
            raise invalid(
                f"lower_diag_index must be smaller than upper_diag_index, received: {self.low} is larger "
                f"than {self.high}"
            )
        rows, columns = size
        self.rows, self.columns = rows, columns
        self.width = min(rows + min(self.high, 0), columns - max(self.low, 0))
        self.above_right, self.below_right = (part == b"RIGHT" for part in align.split(b"_"))

    @property
    def count(self) -> int:
        """How many diagonals."""
        return self.high - self.low + 1

    def offset(self, k: Array) -> Array:
        """Where the diagonals `k` begin when packed: after the padding of those aligned to the right."""
        length = np.minimum(self.rows + np.minimum(k, 0), self.columns - np.maximum(k, 0))
        right = np.where(k >= 0, self.above_right, self.below_right)
        return np.where(right, self.width - length, 0)

    def in_matrix(self) -> tuple[Array, Array, Array]:
        """For each matrix element: whether it is in the band, and its (diagonal, place) when packed."""
        i, j = np.arange(self.rows)[:, None], np.arange(self.columns)[None, :]
        k = j - i
        inside = (k >= self.low) & (k <= self.high)
        place = np.minimum(i, j) + self.offset(k)
        return inside, np.where(inside, self.high - k, 0), np.where(inside, place, 0)

    def in_packed(self) -> tuple[Array, Array, Array]:
        """For each packed element: whether it is no padding, and its (row, column) in the matrix."""
        k = self.high - np.arange(self.count)[:, None]
        place = np.arange(self.width)[None, :] - self.offset(k)
        row, column = place - np.minimum(k, 0), place + np.maximum(k, 0)
        inside = (place >= 0) & (row < self.rows) & (column < self.columns)
        return inside, np.where(inside, row, 0), np.where(inside, column, 0)


def _packed(band: Band, diagonal: Array) -> Array:
    """The diagonals as [..., count, width], also when there is only one."""
    if band.count == 1 and diagonal.shape[-1:] == (band.width,):
        return diagonal.reshape((*diagonal.shape[:-1], 1, band.width))
    return diagonal


def _put(xp: ArrayModule, band: Band, diagonal: Array, background: Array) -> Array:
    packed = _packed(band, diagonal)
    if tuple(packed.shape[-2:]) != (band.count, band.width):
        raise invalid(
            f"diagonal must have shape [..., {band.count}, {band.width}] or, for one diagonal, "
            f"[..., {band.width}]; received shape: {list(diagonal.shape)}"
        )
    if band.width == 0:
        return background + xp.zeros((*packed.shape[:-2], band.rows, band.columns), diagonal.dtype)
    if is_numpy(xp):
        return _overwritten(band, packed, np.asarray(background))
    if band.count == 1:
        return _one_put(xp, band, packed[..., 0, :], background)
    inside, which, place = band.in_matrix()
    return xp.where(inside, packed[..., which, place], background)


def _overwritten(band: Band, packed: Array, background: Array) -> Array:
    """A copy of the background, and then one diagonal after the other."""
    lead = np.broadcast_shapes(packed.shape[:-2], background.shape[:-2])
    result = np.empty((*lead, band.rows, band.columns), packed.dtype)
    result[...] = background
    flat = result.reshape(*lead, band.rows * band.columns)
    for which, k in enumerate(range(band.high, band.low - 1, -1)):
        length = min(band.rows + min(k, 0), band.columns - max(k, 0))
        if length > 0:
            start, step, first = max(k, -k * band.columns), band.columns + 1, int(band.offset(np.array(k)))
            flat[..., start : start + length * step : step] = packed[..., which, first : first + length]
    return result


def _one_put(xp: ArrayModule, band: Band, diagonal: Array, background: Array) -> Array:
    """One diagonal: its elements are in order along the rows, or below the main one along the columns."""
    k, above = band.high, band.high >= 0
    behind = (band.rows if above else band.columns) - band.width
    whole = xp.pad(diagonal, [(0, 0)] * (diagonal.ndim - 1) + [(0, behind)])
    inside = xp.arange(band.rows)[:, None] + k == xp.arange(band.columns)
    return xp.where(inside, whole[..., :, None] if above else whole[..., None, :], background)


def _pick(xp: ArrayModule, band: Band, x: Array, padding: Array) -> Array:
    inside, row, column = band.in_packed()
    out = xp.where(inside, x[..., row, column], padding)
    return out[..., 0, :] if band.count == 1 else out


def _square(k: Array, diagonal: Array, rows: int, columns: int) -> tuple[int, int]:
    low, high = ints(k)[0], ints(k)[-1]
    width = diagonal.shape[-1]
    least_rows, least_columns = width - min(high, 0), width + max(low, 0)
    if rows == -1 and columns == -1:
        return (max(least_rows, least_columns),) * 2
    rows, columns = (least_rows if rows == -1 else rows), (least_columns if columns == -1 else columns)
    if rows < least_rows or columns < least_columns:
        raise invalid(f"The number of rows and columns ({rows}, {columns}) is too small for the diagonals.")
    return rows, columns


def _zero(x: Array) -> Array:
    return zeros_of((), np.dtype(x.dtype))


_AT_LEAST_2 = "input must be at least 2-dim, received shape: {}"


def _matrix_diag_shape(op: Operation) -> TensorShape:
    dims = op._inputs[0].shape._d
    if dims is None:
        return UNKNOWN
    if op.type == "MatrixDiag":
        return TensorShape._of((*dims, dims[-1]))
    k, rows, columns = (static_value(op, i) for i in (1, 2, 3))
    if k is None:
        return UNKNOWN
    lead = dims[:-2] if ints(k)[0] != ints(k)[-1] else dims[:-1]
    if dims[-1] is None or rows is None or columns is None:
        return TensorShape._of((*lead, None, None))
    size = _square(k, np.empty((0, dims[-1])), int(rows), int(columns))
    return TensorShape._of((*lead, *size))


@op(
    "MatrixDiag",
    "diagonal: T[1+] -> output: T",
    "T: type",
    shape=_matrix_diag_shape,
    words={"diagonal": "diagonal must be at least 1-dim, received shape: {}"},
    examples=[case(_V), case(_M[0]), case(np.array([], np.float32), grad=False)],
)
def _matrix_diag(xp: ArrayModule, x: Array) -> Array:
    n = x.shape[-1]
    return xp.where(np.eye(n, dtype=bool), x[..., None], _zero(x))


def _matrix_diag_part_shape(op: Operation) -> TensorShape:
    dims = op._inputs[0].shape._d
    if dims is None:
        return UNKNOWN
    k = np.array(0) if op.type == "MatrixDiagPart" else static_value(op, 1)
    if k is None:
        return UNKNOWN
    known = dims[-2] is not None and dims[-1] is not None
    band = Band(k, (dims[-2] or 0, dims[-1] or 0), b"LEFT_LEFT")
    tail = (band.count,) if band.count > 1 else ()
    return TensorShape._of((*dims[:-2], *tail, band.width if known else None))


@op(
    "MatrixDiagPart",
    "input: T[2+] -> diagonal: T",
    "T: type",
    shape=_matrix_diag_part_shape,
    words={"input": _AT_LEAST_2},
    examples=[case(_M), case(_M[0].T.copy())],
)
def _matrix_diag_part(xp: ArrayModule, x: Array) -> Array:
    return xp.diagonal(x, axis1=-2, axis2=-1)


def _matrix_set_diag_shape(op: Operation) -> TensorShape:
    shape, diagonal = (t.shape for t in op._inputs)
    if shape._d is None:
        return UNKNOWN if diagonal._d is None else diagonal[:-1].concatenate([None, None])
    rows, columns = shape._d[-2:]
    least = None if rows is None or columns is None else min(rows, columns)
    if diagonal.rank not in (None, len(shape._d) - 1):
        raise ValueError(f"Shape must be rank {len(shape._d) - 1} but is rank {diagonal.rank}")
    known = diagonal.merge_with([*shape._d[:-2], least])
    result: TensorShape = known[:-1].concatenate([rows, columns])
    return result


@op(
    "MatrixSetDiag",
    "input: T[2+], diagonal: T[1+] -> output: T",
    "T: type",
    shape=_matrix_set_diag_shape,
    words={"input": _AT_LEAST_2, "diagonal": "diagonal must be at least 1-dim, received shape: {}"},
    examples=[case(_M, np.array([[7, 8], [9, 6]], np.float32)), case(_M[0], np.array([5, 4], np.float32))],
)
def _matrix_set_diag(xp: ArrayModule, x: Array, diagonal: Array) -> Array:
    if diagonal.shape != (*x.shape[:-2], min(x.shape[-2:])):
        raise invalid(
            "must have diagonal.shape == input.shape[:-2] + min(input.shape[-2:]), but received input shape: "
            f"{shape_text(x.shape)} and diagonal shape: {shape_text(diagonal.shape)}"
        )
    return _put(xp, Band(0, x.shape[-2:], b"LEFT_LEFT"), diagonal, x)


gradient("MatrixDiag")(lambda op, dy: apply("MatrixDiagPart", dy))


@gradient("MatrixDiagPart")
def _matrix_diag_part_grad(op: Operation, dy: Tensor) -> Tensor:
    dims = op._inputs[0].shape._d
    if dims is not None and dims[-2] == dims[-1] is not None:
        return apply("MatrixDiag", dy)
    return apply("MatrixSetDiag", zeros_like(op._inputs[0]), dy)


@gradient("MatrixSetDiag")
def _matrix_set_diag_grad(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    return apply("MatrixSetDiag", dy, zeros_like(op._inputs[1])), apply("MatrixDiagPart", dy)


_ALIGN = "align: string(LEFT_RIGHT|RIGHT_LEFT|LEFT_LEFT|RIGHT_RIGHT) = 'RIGHT_LEFT'"
_BAND = np.array([-1, 1], np.int32)


def _banded(version: str, attrs: str) -> None:
    """The three ops for any band of diagonals; V2 packs all of them to the left, V3 has a choice."""

    def align_of(op: Operation) -> bytes:
        result: bytes = op._attrs.get("align", b"LEFT_LEFT")
        return result

    @op(
        f"MatrixDiag{version}",
        "diagonal: T[1+], k: int32[1-], num_rows: int32[0], num_cols: int32[0], padding_value: T[0] -> output: T",
        attrs,
        shape=_matrix_diag_shape,
        words={"diagonal": "diagonal must be at least 1-dim, received shape: {}"},
        static=["k", "num_rows", "num_cols"],
        examples=[
            case(_V, np.int32(1), _NO, _NO, np.float32(0)),
            case(
                _M[0][:, :2],
                np.array([0, 1], np.int32) if version == "V3" else np.int32(-1),
                _NO,
                _NO,
                np.float32(9),
                grad=False,
            ),
        ],
    )
    def _diag_kernel(
        xp: ArrayModule, x: Array, k: Array, rows: Array, columns: Array, padding: Array, *, op: Operation
    ) -> Array:
        size = _square(k, x, int(rows), int(columns))
        return _put(xp, Band(k, size, align_of(op)), x, padding)

    @op(
        f"MatrixDiagPart{version}",
        "input: T[2+], k: int32[1-], padding_value: T[0] -> diagonal: T",
        attrs,
        shape=_matrix_diag_part_shape,
        words={"input": _AT_LEAST_2},
        static=["k"],
        examples=[case(_M, np.int32(1), np.float32(0)), case(_M, _BAND, np.float32(9), grad=False)],
    )
    def _part_kernel(xp: ArrayModule, x: Array, k: Array, padding: Array, *, op: Operation) -> Array:
        return _pick(xp, Band(k, x.shape[-2:], align_of(op)), x, padding)

    @op(
        f"MatrixSetDiag{version}",
        "input: T[2+], diagonal: T[1+], k: int32[1-] -> output: T",
        attrs,
        shape=same_as_input,
        static=["k"],
        examples=[
            case(_M, np.ones((2, 2), np.float32), _K0),
            case(_M, np.ones((2, 3, 2), np.float32), _BAND),
        ],
    )
    def _set_kernel(xp: ArrayModule, x: Array, diagonal: Array, k: Array, *, op: Operation) -> Array:
        return _put(xp, Band(k, x.shape[-2:], align_of(op)), diagonal, x)

    def same(op: Operation) -> dict[str, Any]:
        return {"align": op._attrs["align"]} if "align" in op._attrs else {}

    def zero(op: Operation) -> Array:
        return np.zeros((), op._outputs[0].dtype.np_dtype)

    @gradient(f"MatrixDiag{version}")
    def _diag_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, None, None, None]:
        dx = apply_any(f"MatrixDiagPart{version}", dy, op._inputs[1], zero(op), **same(op))
        return dx, None, None, None, None

    @gradient(f"MatrixDiagPart{version}")
    def _part_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, None]:
        zeros = zeros_like(op._inputs[0])
        return apply_any(f"MatrixSetDiag{version}", zeros, dy, op._inputs[1], **same(op)), None, None

    @gradient(f"MatrixSetDiag{version}")
    def _set_grad(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        k = op._inputs[2]
        dx = apply_any(f"MatrixSetDiag{version}", dy, zeros_like(op._inputs[1]), k, **same(op))
        return dx, apply_any(f"MatrixDiagPart{version}", dy, k, zero(op), **same(op)), None


_banded("V2", "T: type")
_banded("V3", f"T: type; {_ALIGN}")


def _plain(*pairs: tuple[Any, Any]) -> bool:
    """Whether every option has its default, so that the oldest form of the op will do."""
    return all(
        not isinstance(value, Tensor) and np.ndim(value) == 0 and value == usual for value, usual in pairs
    )


def _like(value: TensorLike, tensor: Tensor) -> Array | Tensor:
    return value if isinstance(value, Tensor) else np.array(value, tensor.dtype.np_dtype)


@export("matrix_diag", "linalg.diag")
def matrix_diag(
    diagonal: TensorLike,
    name: str | None = "diag",
    k: TensorLike = 0,
    num_rows: TensorLike = -1,
    num_cols: TensorLike = -1,
    padding_value: TensorLike = 0,
) -> Tensor:
    """A batch of matrices with these diagonals, `k` above the main one, and `padding_value` elsewhere."""
    if _plain((k, 0), (num_rows, -1), (num_cols, -1), (padding_value, 0)):
        return apply("MatrixDiag", diagonal, name=name)
    diagonal = to_tensor(diagonal)
    return apply("MatrixDiagV2", diagonal, k, num_rows, num_cols, _like(padding_value, diagonal), name=name)


@export("matrix_diag_part", "linalg.diag_part")
def matrix_diag_part(
    input: TensorLike, name: str | None = "diag_part", k: TensorLike = 0, padding_value: TensorLike = 0
) -> Tensor:
    """The diagonals of a batch of matrices, `k` above the main one."""
    if _plain((k, 0)):
        return apply("MatrixDiagPart", input, name=name)
    input = to_tensor(input)
    return apply("MatrixDiagPartV2", input, k, _like(padding_value, input), name=name)


@export("matrix_set_diag", "linalg.set_diag")
def matrix_set_diag(
    input: TensorLike, diagonal: TensorLike, name: str | None = "set_diag", k: TensorLike = 0
) -> Tensor:
    """A batch of matrices with their diagonals, `k` above the main one, replaced."""
    if _plain((k, 0)):
        return apply("MatrixSetDiag", input, diagonal, name=name)
    return apply("MatrixSetDiagV2", input, diagonal, k, name=name)


@op(
    "MatrixBandPart",
    "input: T, num_lower: Tindex, num_upper: Tindex -> band: T",
    "T: type; Tindex: index = int64",
    shape=same_as_input,
    examples=[case(_M, np.int64(0), np.int64(1)), case(_M[0], np.int32(-1), np.int32(0))],
)
def _matrix_band_part(xp: ArrayModule, x: Array, lower: Array, upper: Array, *, check: Check) -> Array:
    if x.ndim < 2:
        raise invalid(_AT_LEAST_2.format(shape_text(x.shape)))
    for name, number in (("num_lower", lower), ("num_upper", upper)):
        if np.ndim(number):
            raise invalid(f"{name} must be scalar, got shape {shape_text(np.shape(number))}")
    rows, columns = x.shape[-2:]
    message = "num_{} must be negative or less or equal to number of {} ({}) got: {}"
    check(lower <= rows, lambda: message.format("lower", "rows", rows, lower))
    check(upper <= columns, lambda: message.format("upper", "columns", columns, upper))
    below = np.arange(rows)[:, None] - np.arange(columns)[None, :]
    keep = ((lower < 0) | (below <= lower)) & ((upper < 0) | (-below <= upper))
    return xp.where(keep, x, _zero(x))


@gradient("MatrixBandPart")
def _matrix_band_part_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None, None]:
    return apply("MatrixBandPart", dy, op._inputs[1], op._inputs[2]), None, None


@export("matrix_band_part", "linalg.band_part")
def matrix_band_part(
    input: TensorLike, num_lower: TensorLike, num_upper: TensorLike, name: str | None = None
) -> Tensor:
    """Keeps a band around each matrix's diagonal and zeroes the rest; a negative number keeps that side."""
    return apply("MatrixBandPart", input, num_lower, num_upper, name=name)
