"""Matrix products, tensordot and einsum against numpy, with gradients."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.ops.linalg.matmul import _matmul
from tests.support.kernels import both_lives
from tests.support.sessions import run

A = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
Q = np.arange(24, dtype=np.float32).reshape(4, 2, 3) / 8
M = np.arange(15, dtype=np.float32).reshape(3, 5) / 8
V = np.array([1.0, -2.0, 0.5], np.float32)
S = np.arange(9, dtype=np.float32).reshape(3, 3)


def check_gradients(f, *values):
    """The gradient of the sum of squares of `f` against central differences in float64."""
    inputs = [tf.placeholder(tf.float64, v.shape) for v in values]
    loss = tf.reduce_sum(tf.square(f(*inputs)))
    grads = tf.gradients(loss, inputs)
    values = [v.astype(np.float64) for v in values]
    with tf.Session() as session:
        got = session.run(grads, dict(zip(inputs, values, strict=True)))
        for k, v in enumerate(values):
            for at in list(np.ndindex(v.shape))[:4]:
                ends = []
                for step in (1e-5, -1e-5):
                    moved = [w.copy() for w in values]
                    moved[k][at] += step
                    ends.append(session.run(loss, dict(zip(inputs, moved, strict=True))))
                assert got[k][at] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-5)


def test_matmul_of_matrices_is_matmul_and_of_batches_is_batch_matmul():
    assert tf.matmul(A, M).op.type == "MatMul"
    batch = tf.matmul(Q, M)
    assert batch.op.type == "BatchMatMulV2"
    assert batch.shape.as_list() == [4, 2, 5]
    np.testing.assert_allclose(run(batch), Q @ M, rtol=1e-6)


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_matmul_gradients_with_every_transposition(transposed):
    ta, tb = transposed
    check_gradients(
        lambda x, y: tf.matmul(x, y, transpose_a=ta, transpose_b=tb), A.T if ta else A, M.T if tb else M
    )
    check_gradients(
        lambda x, y: tf.matmul(x, y, adjoint_a=ta, adjoint_b=tb),
        Q.transpose(0, 2, 1) if ta else Q,
        M.T if tb else M,
    )


def test_sizes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 3 and 2"):
        tf.matmul(A, A)
    with pytest.raises(ValueError, match="Shape must be rank 2 but is rank 1"):
        tf.matmul(V, V)
    x = tf.placeholder(tf.float32, [None, None])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"In\[0\]: \[2,3\], In\[1\]: \[2,3\]"):
        run(tf.matmul(x, x), {x: A})


def test_matmul_refuses_transpose_and_adjoint_together():
    with pytest.raises(ValueError, match="Only one of transpose_a and adjoint_a"):
        tf.matmul(A, M, transpose_a=True, adjoint_a=True)


@pytest.mark.parametrize(
    ("x", "y", "axes"),
    [(Q, M, 1), (Q, A, [[1, 2], [0, 1]]), (Q, Q, [[0, 2], [0, 2]]), (A, V, [[-1], [-1]]), (A, V, 0)],
)
@pytest.mark.parametrize("known", [True, False])
def test_tensordot_is_numpys(x, y, axes, known):
    a = tf.placeholder(tf.float32, x.shape if known else None)
    got = run(tf.tensordot(a, y, axes), {a: x})
    np.testing.assert_allclose(got, np.tensordot(x, y, axes), rtol=1e-5)


EQUATIONS = [
    ("ij,jk->ik", A, M),
    ("bij,jk->bik", Q, M),
    ("bij,bij->b", Q, Q + 1),
    ("ij->ji", A),
    ("ij->", A),
    ("ij,j", A, V),
    ("i,j->ij", V, V),
    ("ii->i", S),
    ("...ij,jk->...ik", Q, M),
    ("b...j,j->...b", Q, V),
    ("ij,jk,k->i", A, S, V),
]


@pytest.mark.parametrize(
    ("equation", "values"), [(e, v) for e, *v in EQUATIONS], ids=[e for e, *_ in EQUATIONS]
)
def test_einsum_is_numpys_and_differentiates(equation, values):
    np.testing.assert_allclose(run(tf.einsum(equation, *values)), np.einsum(equation, *values), rtol=1e-5)
    check_gradients(lambda *xs: tf.einsum(equation, *xs), *values)


def test_einsum_refuses_what_does_not_parse():
    with pytest.raises(ValueError, match="Incorrect number of arguments"):
        tf.einsum("ij,jk->ik", A)
    with pytest.raises(ValueError, match="Unknown output labels"):
        tf.einsum("ij->k", A)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.complex64])
@pytest.mark.parametrize(
    ("inner", "rows", "columns"), [(40, 30, 3), (8, 256, 9), (8, 255, 9), (1, 1, 1), (0, 4, 3)]
)
def test_a_transposed_left_factor_gives_the_same_compiled(inner, rows, columns, dtype):
    draw = np.random.RandomState(5)
    a = draw.randint(-9, 9, (inner, rows)).astype(dtype)
    b = draw.randint(-9, 9, (inner, columns)).astype(dtype)
    got = both_lives(_matmul, a, b, transpose_a=True, transpose_b=False)
    np.testing.assert_array_equal(got, a.T @ b)


def test_factors_of_two_types_are_multiplied_as_matrices_with_zeros(session):
    a, b = np.arange(6.0).reshape(2, 3).astype(np.float32), np.ones((3, 2), np.float32)
    product = tf.matmul(tf.cast(a, tf.bfloat16), tf.constant(b))
    assert product.dtype == tf.float32 and product.op.type == "SparseMatMul"
    assert np.array_equal(session.run(product), a @ b)
