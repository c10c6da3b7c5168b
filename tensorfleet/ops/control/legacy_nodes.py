"""Ops of graphs from before TensorFlow 1.0, which other ops have replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph import registry
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import UNKNOWN, same_as_input, unknown

_REAL = "T: {double, float}"
_NUMBERS = "T: {float, double, complex64, complex128}"


def _formerly(
    old: str,
    now: str,
    version: int,
    signature: str,
    attrs: str,
    shape: Callable[[Operation], TensorShape] | None = None,
    said: str = "",
) -> None:
    """Registers an op that another op has replaced from a version of graphs on."""
    spec = registry.get(now)
    static = [spec.inputs[i].name for i in spec.static]
    removed = (version, said or f"Use {now}")
    op(old, signature, attrs, shape=shape or spec.shape, static=static, removed=removed)(spec.kernel)


# When ops of linear algebra took one matrix, these took several.
_formerly("BatchCholesky", "Cholesky", 13, "input: T -> output: T", _REAL)
_formerly("BatchMatrixDeterminant", "MatrixDeterminant", 13, "input: T -> output: T", _NUMBERS)
_formerly(
    "BatchMatrixInverse", "MatrixInverse", 13, "input: T -> output: T", f"adjoint: bool = false; {_REAL}"
)
_formerly(
    "BatchMatrixSolve", "MatrixSolve", 13, "matrix: T, rhs: T -> output: T", f"adjoint: bool = false; {_REAL}"
)
_formerly(
    "BatchMatrixTriangularSolve",
    "MatrixTriangularSolve",
    13,
    "matrix: T, rhs: T -> output: T",
    f"lower: bool = true; adjoint: bool = false; {_REAL}",
)
_formerly(
    "BatchSelfAdjointEigV2",
    "SelfAdjointEigV2",
    13,
    "input: T -> e: T, v: T",
    f"compute_v: bool = true; {_REAL}",
)
_formerly(
    "BatchSvd",
    "Svd",
    13,
    "input: T -> s: T, u: T, v: T",
    f"compute_uv: bool = true; full_matrices: bool = false; {_NUMBERS}",
)
_formerly(
    "BatchMatrixBandPart",
    "MatrixBandPart",
    14,
    "input: T, num_lower: int64, num_upper: int64 -> band: T",
    "T: type",
)
_formerly("BatchMatrixDiag", "MatrixDiag", 14, "diagonal: T -> output: T", "T: type", unknown)
_formerly("BatchMatrixDiagPart", "MatrixDiagPart", 14, "input: T -> diagonal: T", "T: type", unknown)
_formerly("BatchMatrixSetDiag", "MatrixSetDiag", 14, "input: T, diagonal: T -> output: T", "T: type")
for _rank in ("", "2D", "3D"):
    for _way in ("FFT", "IFFT"):
        _formerly(f"Batch{_way}{_rank}", f"{_way}{_rank}", 15, "input: complex64 -> output: complex64", "")
_formerly(
    "PlaceholderV2",
    "Placeholder",
    23,
    "-> output: dtype",
    "dtype: type; shape: shape",
    said="Placeholder now behaves the same as PlaceholderV2",
)
not_differentiable("PlaceholderV2")


def _with_values_shape(op: Operation) -> TensorShape:
    dims = op._inputs[0].shape.as_list() if op._inputs[0].shape.rank else None
    return (
        UNKNOWN
        if dims is None
        else TensorShape([*dims[:-2], None if dims[-1] is None else dims[-1] + 1, dims[-1]])
    )


for _name, _types in (("SelfAdjointEig", "T: {double, float, half}"), ("BatchSelfAdjointEig", _REAL)):

    @op(
        _name,
        "input: T[2+] -> output: T",
        _types,
        shape=_with_values_shape,
        removed=(11, "Use SelfAdjointEigV2 instead"),
    )
    def _eig(xp: ArrayModule, x: Array, *, check: Check) -> Array:
        """The eigenvalues in a row above the vectors."""
        values, vectors = registry.get("SelfAdjointEigV2").kernel(xp, x, compute_v=True, check=check)
        return xp.concatenate([values[..., None, :], vectors], axis=-2)


def _top_shape(op: Operation) -> TensorShape:
    dims = op._inputs[0].shape.as_list() if op._inputs[0].shape.rank else None
    return UNKNOWN if dims is None else TensorShape([*dims[:-1], op._attrs["k"]])


@op(
    "TopK",
    "input: T[1+] -> values: T, indices: int32",
    "k: int >= 0; sorted: bool = true; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
    "uint32, uint64}",
    shape=lambda op: [_top_shape(op)] * 2,
    in_numpy=lambda op: not op._attrs["sorted"],
    removed=(7, "Use TopKV2 instead"),
)
def _top_k(xp: ArrayModule, x: Array, *, k: int, sorted: bool) -> tuple[Array, Array]:
    values, indices = registry.get("TopKV2").kernel(xp, x, k, sorted=sorted, index_type=dtypes.int32)
    return values, indices


@op(
    "TileGrad",
    "input: T, multiples: int32[1] -> output: T",
    "T: type",
    static=["multiples"],
    shape=unknown,
    removed=(3, "TileGrad has been replaced with reduce_sum"),
)
def _tile_grad(xp: ArrayModule, x: Array, multiples: Array) -> Array:
    """The sum of all copies."""
    split = [
        n for size, times in zip(x.shape, multiples, strict=True) for n in (int(times), size // int(times))
    ]
    total: Array = x.reshape(split).sum(tuple(range(0, 2 * len(multiples), 2))).astype(x.dtype)
    return total


not_differentiable("TileGrad", "TopK")


_CONV3D = "T: {half, float, double}; strides: list(int) >= 5; padding: string(SAME|VALID); dilations: list(int) = [1, 1, 1, 1, 1]"


def _backprop(of: str, like: int) -> None:
    """A gradient that takes the tensor itself where its successor takes the sizes."""
    spec = registry.get(f"Conv3DBackprop{of}V2")

    def kernel(
        xp: ArrayModule,
        x: Array,
        filter: Array,
        grad: Array,
        *,
        strides: list[int],
        padding: bytes,
        dilations: list[int],
    ) -> Any:
        sizes = np.array((x, filter)[like].shape, np.int32)
        arguments = [x, filter, grad]
        arguments[like] = sizes
        known = {"strides": strides, "padding": padding, "dilations": dilations, "data_format": b"NDHWC"}
        return spec.kernel(xp, *arguments, **{name: known[name] for name in spec.kernel_attrs})

    op(
        f"Conv3DBackprop{of}",
        "input: T[5], filter: T[5], out_backprop: T[5] -> output: T",
        _CONV3D,
        shape=lambda op: op._inputs[like].shape,
        heavy=True,
        removed=(10, f"Use Conv3DBackprop{of}V2"),
    )(kernel)


_backprop("Input", 0)
_backprop("Filter", 1)


@op(
    "AdjustContrast",
    "images: T[3+], contrast_factor: float[0], min_value: float[0], max_value: float[0] -> output: float",
    "T: {uint8, int8, int16, int32, int64, float, double}",
    shape=same_as_input,
    removed=(2, "Use AdjustContrastv2 instead"),
)
def _adjust_contrast(xp: ArrayModule, images: Array, factor: Array, low: Array, high: Array) -> Array:
    moved = registry.get("AdjustContrastv2").kernel(xp, images.astype(np.float32), factor)
    return xp.clip(moved, low, high)


not_differentiable("AdjustContrast")
