"""Functions of whole matrices: factors, roots, logarithms, exponentials; tridiagonal systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check, HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.openblas import by_matrix, in_one_thread
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.constructors import eye
from tensorfleet.ops.array.shape import reshape
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.array.transpose import matrix_transpose
from tensorfleet.ops.control.while_loop import while_loop
from tensorfleet.ops.elementwise import wide
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet.ops.linalg.shapes import TYPES, adjoint_of, matrices, need_square, same_size, square_like
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.samples import case

_A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.7, 2.0]])
_PIVOTED = np.array([[0.1, 1.0, 0.5], [-4.0, 3.0, 0.2], [0.5, 0.3, -2.0]])


# -- LU ----------------------------------------------------------------------------------------------


def _factored(op: Operation) -> list[TensorShape]:
    shape = square_like(op)
    return [shape, TensorShape(None) if shape.rank is None else TensorShape(shape.as_list()[:-1])]


@op(
    "Lu",
    "input: T -> lu: T, p: output_idx_type",
    TYPES + "; output_idx_type: index = int32",
    shape=_factored,
    examples=[
        case(_PIVOTED),
        case(np.stack([_A, _PIVOTED]).astype(np.float32), output_idx_type=dtypes.int64),
    ],
)
def _lu(xp: ArrayModule, x: Array, *, output_idx_type: dtypes.DType, check: Check) -> tuple[Array, Array]:
    need_square(x)
    factors: Any
    order: Any
    if is_numpy(xp):
        factors, order = _lu_on_host(wide(x))
    else:
        from jax.lax import linalg

        factors, _, order = linalg.lu(wide(x))
    pivots = xp.diagonal(factors, axis1=-2, axis2=-1)
    check((pivots != 0).all(), lambda: "Input is not invertible.")
    return factors.astype(x.dtype), order.astype(output_idx_type.np_dtype)


def _lu_on_host(x: Array) -> tuple[Array, Array]:
    from scipy.linalg import lapack

    factor = lapack.get_lapack_funcs(("getrf",), (x,))[0]
    factors, order = np.empty_like(x), np.empty(x.shape[:-1], np.int64)
    for index in np.ndindex(x.shape[:-2]):
        factors[index], swaps, _ = factor(x[index])
        rows = np.arange(x.shape[-1])
        for i, j in enumerate(swaps):
            rows[[i, j]] = rows[[j, i]]
        order[index] = rows
    return factors, order


@export("linalg.lu")
def lu(input: TensorLike, output_idx_type: DTypeLike = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """Both triangular factors of each matrix, packed into one, and the order of its rows they are for."""
    return apply_list("Lu", input, output_idx_type=output_idx_type, name=name)


# -- roots, logarithms, exponentials -----------------------------------------------------------------


def _each(function: Any, x: Array) -> Array:
    """A function of a matrix on each matrix of a batch."""
    if not x.size:
        return x
    return np.stack([function(m) for m in x.reshape(-1, *x.shape[-2:])]).reshape(x.shape)


@op(
    "MatrixSquareRoot",
    "input: T -> output: T",
    TYPES,
    shape=square_like,
    host=True,
    examples=[case(_A), case(np.stack([_A, _A @ _A]).astype(np.float32))],
)
def _square_root(ctx: HostContext, x: Array) -> Array:
    from scipy.linalg import sqrtm

    x = np.asarray(x)
    need_square(x)
    wide_type = np.complex128 if x.dtype.kind == "c" else np.float64
    a = x.astype(wide_type)
    root = _root_of_symmetric(np, a)
    if root is None:
        root = _each(sqrtm, a)
    result: Array = (root if x.dtype.kind == "c" else root.real).astype(x.dtype)
    return result


@in_one_thread
def _root_of_symmetric(xp: ArrayModule, a: Array) -> Array | None:
    """The square roots of matrices that have eigenvectors at right angles and no negative eigenvalue; else None.

    A covariance is such a matrix. Eigenvectors of many are found side by side, other factors one matrix after the other.
    """
    if not np.array_equal(a, adjoint_of(np, a)):
        return None
    values, vectors = by_matrix(np, np.linalg.eigh, a)
    if (values < 0).any():
        return None
    result: Array = (vectors * np.sqrt(values)[..., None, :]) @ adjoint_of(np, vectors)
    return result


@gradient("MatrixSquareRoot")
def _square_root_gradient(op: Operation, dy: Tensor) -> Tensor:
    """Solves R* X + X R* = dy for X, written out as one system of equations per matrix."""
    root = op.outputs[0]
    size = shape_of(root)[-1]
    adjoint = matrix_transpose(root, conjugate=True)
    one = eye(size, dtype=root.dtype.base_dtype)
    whole = _kronecker(adjoint, one) + _kronecker(one, apply("Conj", root) if root.dtype.is_complex else root)
    outer = shape_of(root)[:-2]
    column = reshape(dy, concat([outer, [size * size, 1]], 0))
    return reshape(apply("MatrixSolve", whole, column), shape_of(root))


def _kronecker(a: Tensor, b: Tensor) -> Tensor:
    """The Kronecker product of (batches of) square matrices of one size."""
    size = shape_of(a)[-1]
    rows = apply("ExpandDims", apply("ExpandDims", a, -1), -3)
    columns = apply("ExpandDims", apply("ExpandDims", b, -2), -4)
    product = rows * columns
    outer = shape_of(product)[:-4]
    return reshape(product, concat([outer, [size * size, size * size]], 0))


@export("linalg.sqrtm", "matrix_square_root")
def matrix_square_root(input: TensorLike, name: str | None = None) -> Tensor:
    """The matrix whose product with itself is the input, for each matrix of a batch."""
    return apply("MatrixSquareRoot", input, name=name)


@op(
    "MatrixLogarithm",
    "input: T -> output: T",
    "T: {complex64, complex128}",
    shape=square_like,
    host=True,
    examples=[case(_A.astype(np.complex128)), case((_A + 0.1j).astype(np.complex64)[None])],
)
def _logarithm(ctx: HostContext, x: Array) -> Array:
    from scipy.linalg import logm

    x = np.asarray(x)
    need_square(x)
    return _each(lambda m: logm(m.astype(np.complex128)), x).astype(x.dtype)


not_differentiable("MatrixLogarithm")


@export("linalg.logm")
def matrix_logarithm(input: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of each complex matrix: the inverse of `tf.linalg.expm`."""
    return apply("MatrixLogarithm", input, name=name)


# Padé's coefficients of degree 13, by Higham: up to a norm of 5.37 they are as exact as doubles.
_PADE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)
_LARGEST_NORM = 5.371920351148152


@export("linalg.expm")
def matrix_exponential(input: TensorLike, name: str | None = None) -> Tensor:
    """The exponential of each matrix of a batch."""
    with name_scope(name, "matrix_exponential", [input]):
        x = to_tensor(input, name="input")
        if x.shape.rank == 0 or (x.shape.rank and x.shape.as_list()[-2:] == [0, 0]):
            return x
        kind = x.dtype.base_dtype
        size = apply("Abs", x) if not kind.is_complex else apply("ComplexAbs", x, Tout=kind.real_dtype)
        norm = apply("Max", apply("Sum", size, [-2]), [-1])
        norm = apply("Max", reshape(norm, [-1]), [0])
        halvings = apply("Ceil", apply("Log", norm / _LARGEST_NORM) / np.log(2.0))
        count = cast(apply("Maximum", halvings, to_tensor(0, halvings.dtype.base_dtype)), dtypes.int32)
        scaled = x / cast(apply("Pow", 2.0, cast(count, dtypes.float32)), kind)
        result = _pade(scaled, kind)
        squared: Tensor
        _, squared = while_loop(
            lambda i, _: apply("Less", i, count),
            lambda i, r: (i + 1, matmul(r, r)),
            [to_tensor(0), result],
            shape_invariants=[TensorShape([]), result.shape],
        )
        squared.set_shape(x.shape)
        return squared


def _pade(x: Tensor, kind: dtypes.DType) -> Tensor:
    """A quotient of two polynomials in x that is nearly its exponential."""
    b = [to_tensor(c, kind) for c in _PADE]
    one = eye(shape_of(x)[-1], dtype=kind)
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    odd = matmul(x6, b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one
    odd = matmul(x, odd)
    even = matmul(x6, b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    return apply("MatrixSolve", even - odd, even + odd)


# -- tridiagonal matrices ----------------------------------------------------------------------------

_DIAGONALS = np.array([[1.0, 0.5, 0.0], [4.0, 3.0, 5.0], [0.0, 0.3, 0.2]])
_RHS = np.array([[1.0, 2.0], [-0.5, 0.3], [0.2, 1.0]])


def _solved_like(op: Operation) -> TensorShape:
    a, b = matrices(op._inputs[0].shape), matrices(op._inputs[1].shape)
    if a is None or b is None:
        return op._inputs[1].shape
    TensorShape(a[0]).merge_with(b[0])
    if a[1] not in (None, 3):
        raise ValueError(f"Dimension must be 3 but is {a[1]}")
    same_size(a[2], b[1])
    return op._inputs[1].shape


@op(
    "TridiagonalSolve",
    "diagonals: T, rhs: T -> output: T",
    "partial_pivoting: bool = true; perturb_singular: bool = false; T: {double, float, complex64, complex128}",
    shape=_solved_like,
    host=True,
    examples=[
        case(_DIAGONALS, _RHS),
        case(_DIAGONALS, _RHS, partial_pivoting=False),
        case(np.stack([_DIAGONALS] * 2).astype(np.float32), np.stack([_RHS] * 2).astype(np.float32)),
    ],
)
def _tridiagonal_solve(ctx: HostContext, diagonals: Array, rhs: Array, *, partial_pivoting: bool) -> Array:
    from scipy.linalg import LinAlgError, solve_banded

    diagonals, rhs = np.asarray(diagonals), np.asarray(rhs)
    if diagonals.shape[-2] != 3 or diagonals.shape[-1] != rhs.shape[-2]:
        text = f"Expected diagonals [..., 3, M] and rhs [..., M, K], got {diagonals.shape} and {rhs.shape}"
        raise errors.invalid(text)
    if not partial_pivoting:
        return _eliminated(diagonals, rhs)
    out = np.empty_like(rhs)
    for index in np.ndindex(rhs.shape[:-2]):
        banded = diagonals[index].copy()
        banded[0] = np.roll(banded[0], 1)
        banded[2] = np.roll(banded[2], -1)
        try:
            out[index] = solve_banded((1, 1), banded, rhs[index])
        except (LinAlgError, ValueError) as e:
            raise _singular() from e
    return out


def _singular() -> Exception:
    return errors.invalid("The first element of diagonal is zero: the matrix is singular.")


def _eliminated(diagonals: Array, rhs: Array) -> Array:
    """Row by row down, then up, for all matrices at once: the rows are first, so that each is one piece of memory."""
    upper, main, lower = (np.moveaxis(diagonals[..., i, :], -1, 0)[..., None].copy() for i in range(3))
    out = np.moveaxis(rhs, -2, 0).copy()
    uppers, mains, outs = list(upper), list(main), list(out)
    share, product = np.empty_like(main[:1])[0], np.empty_like(out[:1])[0]
    for i, below in enumerate(list(lower)[1:]):
        np.divide(below, mains[i], out=share)
        np.subtract(mains[i + 1], share * uppers[i], out=mains[i + 1])
        np.multiply(share, outs[i], out=product)
        np.subtract(outs[i + 1], product, out=outs[i + 1])
    if not main.all():
        raise _singular()
    upper /= main
    out /= main
    for i in range(len(out) - 2, -1, -1):
        np.multiply(uppers[i], outs[i + 1], out=product)
        np.subtract(outs[i], product, out=outs[i])
    return np.moveaxis(out, 0, -2)


def _shifted(x: Tensor, by: int) -> Tensor:
    """Moved along the last axis, with a zero where nothing is left."""
    pads = [[0, 0]] * (len(x.shape.as_list()) - 1)
    if by > 0:
        return apply("Pad", x[..., :-1], [*pads, [1, 0]])
    return apply("Pad", x[..., 1:], [*pads, [0, 1]])


def _shifted_rows(x: Tensor, by: int) -> Tensor:
    pads = [[0, 0]] * (len(x.shape.as_list()) - 2)
    if by > 0:
        return apply("Pad", x[..., :-1, :], [*pads, [1, 0], [0, 0]])
    return apply("Pad", x[..., 1:, :], [*pads, [0, 1], [0, 0]])


def _conj(x: Tensor) -> Tensor:
    return apply("Conj", x) if x.dtype.base_dtype.is_complex else x


@gradient("TridiagonalSolve")
def _tridiagonal_solve_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    diagonals, x = op.inputs[0], op.outputs[0]
    upper, main, lower = (diagonals[..., i, :] for i in range(3))
    turned = apply(
        "Pack",
        [_conj(_shifted(lower, -1)), _conj(main), _conj(_shifted(upper, 1))],
        axis=len(main.shape.as_list()) - 1,
    )
    to_rhs = apply("TridiagonalSolve", turned, dy, partial_pivoting=op.get_attr("partial_pivoting"))
    parts = [_shifted_rows(x, -1), x, _shifted_rows(x, 1)]
    sums = [-apply("Sum", to_rhs * _conj(p), [-1]) for p in parts]
    return apply("Pack", sums, axis=len(main.shape.as_list()) - 1), to_rhs


def _multiplied_like(op: Operation) -> TensorShape:
    upper, main, lower, x = (t.shape for t in op._inputs)
    rows = lower.merge_with(upper.merge_with(main))
    if rows._d is None or x._d is None:
        return x
    TensorShape(rows._d[:-2]).merge_with(x._d[:-2])
    same_size(rows._d[-1], x._d[-2])
    return x


@op(
    "TridiagonalMatMul",
    "superdiag: T[2+], maindiag: T[2+], subdiag: T[2+], rhs: T[2+] -> output: T",
    "T: {double, float, complex64, complex128}",
    shape=_multiplied_like,
    examples=[
        case(_DIAGONALS[:1], _DIAGONALS[1:2], _DIAGONALS[2:], _RHS),
        case(*(np.stack([d] * 2) for d in (_DIAGONALS[:1], _DIAGONALS[1:2], _DIAGONALS[2:], _RHS))),
    ],
)
def _tridiagonal_matmul(xp: ArrayModule, upper: Array, main: Array, lower: Array, x: Array) -> Array:
    pads = [(0, 0)] * (x.ndim - 2)
    after = xp.pad(x[..., 1:, :], [*pads, (0, 1), (0, 0)])
    before = xp.pad(x[..., :-1, :], [*pads, (1, 0), (0, 0)])
    columns = [xp.swapaxes(d, -1, -2) for d in (upper, main, lower)]
    result: Array = columns[0] * after + columns[1] * x + columns[2] * before
    return result


@gradient("TridiagonalMatMul")
def _tridiagonal_matmul_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    upper, main, lower, x = op.inputs
    to_rhs = apply(
        "TridiagonalMatMul", _shifted(_conj(lower), -1), _conj(main), _shifted(_conj(upper), 1), dy
    )
    parts = [_shifted_rows(x, -1), x, _shifted_rows(x, 1)]
    sums = [matrix_transpose(apply("Sum", dy * _conj(p), [-1], keep_dims=True)) for p in parts]
    to_upper, to_main, to_lower = sums
    return to_upper, to_main, to_lower, to_rhs


def _compact(diagonals: Any, form: str) -> list[Tensor]:
    """The three diagonals [..., size] of any of the three forms they may come in."""
    if form == "matrix":
        matrix = to_tensor(diagonals)
        return [
            _shifted_up(matrix_diagonal(matrix, 1)),
            matrix_diagonal(matrix, 0),
            _shifted_down(matrix_diagonal(matrix, -1)),
        ]
    if form == "sequence":
        upper, main, lower = (to_tensor(d) for d in diagonals)
        size = main.shape.as_list()[-1]
        if size is not None and upper.shape.as_list()[-1] == size - 1:
            upper, lower = _shifted_up(upper), _shifted_down(lower)
        return [upper, main, lower]
    if form == "compact":
        packed = to_tensor(diagonals)
        if packed.shape.rank is not None and packed.shape.rank < 2:
            raise ValueError(f"Expected diagonals to have rank at least 2, got {packed.shape.rank}")
        if packed.shape[-2].value not in (None, 3):
            raise ValueError(f"Expected 3 diagonals got {packed.shape[-2]}")
        return [packed[..., i, :] for i in range(3)]
    raise ValueError(f"Unrecognized diagonals_format: {form}")


def _check_sides(packed: TensorShape, right: TensorShape) -> None:
    """Whether there is a right side, or a matrix of them, for each system."""
    if packed.rank is None or right.rank is None:
        return
    if right.rank not in (packed.rank, packed.rank - 1):
        raise ValueError(
            f"Expected the rank of rhs to be {packed.rank - 1} or {packed.rank}, got {right.rank}"
        )
    if not packed[:-2].is_compatible_with(right[: packed.rank - 2]):
        raise ValueError(f"Batch shapes {packed[:-2]} and {right[: packed.rank - 2]} are incompatible")


def _shifted_up(x: Tensor) -> Tensor:
    return apply("Pad", x, [*[[0, 0]] * (len(x.shape.as_list()) - 1), [0, 1]])


def _shifted_down(x: Tensor) -> Tensor:
    return apply("Pad", x, [*[[0, 0]] * (len(x.shape.as_list()) - 1), [1, 0]])


def matrix_diagonal(matrix: Tensor, k: int) -> Tensor:
    """One of the diagonals next to the main one, or the main one."""
    part = matrix[..., :-1, 1:] if k == 1 else matrix[..., 1:, :-1] if k == -1 else matrix
    return apply("MatrixDiagPart", part)


@export("linalg.tridiagonal_solve")
def tridiagonal_solve(
    diagonals: TensorLike,
    rhs: TensorLike,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> Tensor:
    """The solution of systems whose matrices have three diagonals.

    They come packed as [..., 3, size], as a sequence of three, or as whole matrices.
    """
    with name_scope(name or "tridiagonal_solve", None, None):
        upper, main, lower = _compact(diagonals, diagonals_format)
        packed = apply("Pack", [upper, main, lower], axis=len(main.shape.as_list()) - 1)
        right = to_tensor(rhs, packed.dtype.base_dtype)
        _check_sides(packed.shape, right.shape)
        vector = right.shape.rank == main.shape.rank
        if vector:
            right = apply("ExpandDims", _conj(right) if conjugate_rhs else right, -1)
        elif transpose_rhs:
            right = matrix_transpose(right, conjugate=conjugate_rhs)
        elif conjugate_rhs:
            right = _conj(right)
        solution = apply("TridiagonalSolve", packed, right, partial_pivoting=partial_pivoting)
        if vector:
            return apply("Squeeze", solution, squeeze_dims=[-1])
        return matrix_transpose(solution) if transpose_rhs else solution


@export("linalg.tridiagonal_matmul")
def tridiagonal_matmul(
    diagonals: TensorLike, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """The product of matrices with three diagonals and others. See `tridiagonal_solve` for the forms."""
    with name_scope(name or "tridiagonal_matmul", None, None):
        rows = [apply("ExpandDims", d, -2) for d in _compact(diagonals, diagonals_format)]
        return apply("TridiagonalMatMul", *rows, rhs)
