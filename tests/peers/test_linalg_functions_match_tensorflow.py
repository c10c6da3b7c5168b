"""Functions of matrices, and einsum's gradients, against TensorFlow."""

import warnings

import numpy as np
import pytest

import tensorfleet as tf

RANDOM = np.random.RandomState(0)
SQUARE = RANDOM.randn(2, 4, 4)
DIAGONALS = RANDOM.rand(2, 3, 4) + np.array([0, 3, 0])[:, None]

CALLS = {
    "einsum i...i": (lambda t, x: t.einsum("i...i->...", t.transpose(x, [1, 0, 2])), SQUARE),
    "expm": (lambda t, x: t.linalg.expm(x), SQUARE),
    "expm_large": (lambda t, x: t.linalg.expm(x * 5), SQUARE),
    "expm_small": (lambda t, x: t.linalg.expm(x[0] * 0.01), SQUARE),
    "sqrtm": (lambda t, x: t.linalg.sqrtm(t.matmul(x, x, transpose_b=True)), SQUARE),
    "tridiagonal_solve": (lambda t, x: t.linalg.tridiagonal_solve(x, t.constant(np.ones((2, 4)))), DIAGONALS),
    "tridiagonal_solve_matrix": (
        lambda t, x: t.linalg.tridiagonal_solve(x, t.constant(np.arange(8.0).reshape(1, 4, 2)[[0, 0]])),
        DIAGONALS,
    ),
    "tridiagonal_solve_sequence": (
        lambda t, x: t.linalg.tridiagonal_solve(
            [x[..., 0, :], x[..., 1, :], x[..., 2, :]],
            t.constant(np.ones((2, 4, 1))),
            diagonals_format="sequence",
        ),
        DIAGONALS,
    ),
    "tridiagonal_solve_whole": (
        lambda t, x: t.linalg.tridiagonal_solve(
            t.matrix_band_part(x, 1, 1) + 4 * t.eye(4, dtype=t.float64),
            t.constant(np.ones((2, 4))),
            diagonals_format="matrix",
        ),
        SQUARE,
    ),
    "tridiagonal_matmul": (
        lambda t, x: t.linalg.tridiagonal_matmul(x, np.arange(16.0).reshape(2, 4, 2)),
        DIAGONALS,
    ),
    **{
        f"einsum {equation}": (lambda t, x, e=equation: t.einsum(e, x), SQUARE)
        for equation in ("...ii->...i", "...ii->...", "bii->bi", "...ii->i...", "aii->ia")
    },
    **{
        f"einsum {equation}": (lambda t, x, e=equation: t.einsum(e, x, x[0]), SQUARE)
        for equation in (
            "...ii,ij->...j",
            "...ii,jj->...ij",
            "bii,ij->bj",
            "...ij,jj->...i",
            "...ii,...ii->...",
        )
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_tensorflows(tensorflow, name):
    call, value = CALLS[name]
    results = []
    for library in (tf, tensorflow):
        graph = library.Graph()
        with graph.as_default(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = library.constant(value)
            y = call(library, x)
            weights = np.random.RandomState(1).rand(*y.shape.as_list())
            (dx,) = library.gradients(y * weights, x)
            with library.Session(graph=graph) as session:
                results.append(session.run([y, dx]))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)
