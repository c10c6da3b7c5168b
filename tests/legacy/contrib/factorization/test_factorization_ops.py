"""Weighted alternating least squares, against numpy."""

import numpy as np
import pytest

import tensorfleet as tf

RANDOM = np.random.RandomState(5)
MATRIX = np.where(RANDOM.rand(6, 5) < 0.5, RANDOM.rand(6, 5), 0).astype(np.float32)
ROWS, COLS = RANDOM.rand(6, 2).astype(np.float32), RANDOM.rand(5, 2).astype(np.float32)
ROW_WEIGHTS, COL_WEIGHTS = (
    (0.5 + RANDOM.rand(6)).astype(np.float32),
    (0.5 + RANDOM.rand(5)).astype(np.float32),
)
UNOBSERVED, L2 = 0.1, 0.01


def sparse(matrix):
    indices = np.argwhere(matrix)
    return tf.SparseTensor(indices, matrix[tuple(indices.T)], matrix.shape)


def solved(matrix, right, own, others):
    """The rows with the least error, in double precision."""
    results = []
    for row, weight in zip(matrix, own, strict=True):
        weights = UNOBSERVED + (row != 0) * weight * others
        left = (right * weights[:, None]).T @ right + L2 * np.eye(right.shape[1])
        results.append(np.linalg.solve(left, right.T @ (weights * row)))
    return np.array(results)


def model(**options):
    given = dict(
        unobserved_weight=UNOBSERVED,
        regularization=L2,
        row_init=ROWS,
        col_init=COLS,
        row_weights=ROW_WEIGHTS,
        col_weights=COL_WEIGHTS,
    )
    return tf.contrib.factorization.WALSModel(6, 5, 2, **{**given, **options})


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def prepared(session, made, what):
    session.run(made.initialize_op)
    session.run(made.worker_init)
    session.run(getattr(made, f"{what}_update_prep_gramian_op"))
    session.run(getattr(made, f"initialize_{what}_update_op"))


def test_rows_are_the_least_squares_given_the_columns(sess):
    output = model()
    new, update, loss, held, total = output.update_row_factors(sparse(MATRIX))
    prepared(sess, output, "row")
    expected = solved(MATRIX, COLS, ROW_WEIGHTS, COL_WEIGHTS)
    result, value, back, weight = sess.run([new, loss, held, total])
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    weights = UNOBSERVED + (MATRIX != 0) * np.outer(ROW_WEIGHTS, COL_WEIGHTS)
    assert value == pytest.approx((weights * (MATRIX - expected @ COLS.T) ** 2).sum(), rel=1e-3)
    assert back == pytest.approx(L2 * ((expected**2).sum() + (COLS**2).sum()), rel=1e-4)
    assert weight == pytest.approx(weights.sum(), rel=1e-5)
    sess.run(update)
    np.testing.assert_allclose(sess.run(output.row_factors[0]), expected, rtol=1e-4, atol=1e-5)


def test_columns_and_transposed_input(sess):
    result = model()
    straight = result.update_col_factors(sparse(MATRIX))[0]
    turned = result.update_col_factors(sparse(MATRIX.T), transpose_input=True)[0]
    prepared(sess, result, "col")
    order = np.unique(np.argwhere(MATRIX)[:, 1], return_index=True)[1].argsort()
    expected = solved(MATRIX.T, ROWS, COL_WEIGHTS, ROW_WEIGHTS)
    np.testing.assert_allclose(sess.run(straight), expected[order], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sess.run(turned), expected, rtol=1e-4, atol=1e-5)


def test_shards_hold_parts_of_the_rows(sess):
    result = model(
        num_row_shards=4,
        row_init=np.split(ROWS, [2, 4, 5]),
        row_weights=np.split(ROW_WEIGHTS, [2, 4, 5]),
    )
    _, update, *_ = result.update_row_factors(sparse(MATRIX))
    prepared(sess, result, "row")
    sess.run(update)
    assert [v.shape.as_list()[0] for v in result.row_factors] == [2, 2, 1, 1]
    expected = solved(MATRIX, COLS, ROW_WEIGHTS, COL_WEIGHTS)
    np.testing.assert_allclose(np.concatenate(sess.run(result.row_factors)), expected, rtol=1e-4, atol=1e-5)


def test_a_projection_changes_nothing(sess):
    output = model()
    result = output.project_row_factors(sparse(MATRIX[2:3]), projection_weights=0.7)
    prepared(sess, output, "row")
    expected = solved(MATRIX[2:3], COLS, [0.7], COL_WEIGHTS)
    np.testing.assert_allclose(sess.run(result), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(sess.run(output.row_factors[0]), ROWS)


def test_without_weights_all_entries_weigh_the_same(sess):
    output = model(row_weights=None, col_weights=None)
    result = output.update_row_factors(sparse(MATRIX))[0]
    prepared(sess, output, "row")
    expected = solved(MATRIX, COLS, np.zeros(6), np.zeros(5))
    np.testing.assert_allclose(sess.run(result), expected, rtol=1e-3, atol=1e-4)


def test_sweeps_lower_the_loss(sess):
    result = tf.contrib.factorization.WALSModel(6, 5, 3, regularization=L2)
    tf.set_random_seed(3)
    _, rows, loss, *_ = result.update_row_factors(sparse(MATRIX))
    _, columns, *_ = result.update_col_factors(sparse(MATRIX))
    sess.run(result.initialize_op)
    losses = []
    for _ in range(10):
        sess.run(result.row_update_prep_gramian_op)
        losses.append(sess.run([loss, rows])[0])
        sess.run(result.col_update_prep_gramian_op)
        sess.run(columns)
    assert losses[-1] < losses[0] / 2
    with pytest.raises(ValueError, match="Invalid weight initialization argument"):
        model(row_weights=-1)
