"""Ops of old graphs give what the ops of today give."""

import numpy as np
import pytest
from tensorfleet.python.framework import test_util

import tensorfleet as tf
from tests.support.sessions import run

_RANDOM = np.random.RandomState(0)
SQUARE = _RANDOM.rand(2, 3, 3)
POSITIVE = SQUARE @ SQUARE.transpose(0, 2, 1) + np.eye(3)
WAVES = (_RANDOM.rand(2, 3, 4, 4) + 1j * _RANDOM.rand(2, 3, 4, 4)).astype(np.complex64)
VOLUME = _RANDOM.rand(1, 4, 4, 4, 2).astype(np.float32)
FILTER = _RANDOM.rand(2, 2, 2, 2, 3).astype(np.float32)
SOLID = dict(strides=[1] * 5, padding="SAME")


@pytest.fixture(autouse=True)
def _old_graph():
    """A graph of the time when all these ops were made."""
    with tf.Graph().as_default() as graph:
        test_util.set_producer_version(graph, 1)
        yield


def raw(name, **inputs):
    result = getattr(tf.raw_ops, name)(**inputs)
    return run(list(result) if isinstance(result, tuple) else result)


@pytest.mark.parametrize(
    ("old", "now", "inputs"),
    [
        ("BatchCholesky", "Cholesky", dict(input=POSITIVE)),
        ("BatchMatrixDeterminant", "MatrixDeterminant", dict(input=SQUARE)),
        ("BatchMatrixInverse", "MatrixInverse", dict(input=POSITIVE, adjoint=True)),
        ("BatchMatrixSolve", "MatrixSolve", dict(matrix=POSITIVE, rhs=SQUARE)),
        (
            "BatchMatrixTriangularSolve",
            "MatrixTriangularSolve",
            dict(matrix=POSITIVE, rhs=SQUARE, lower=False),
        ),
        ("BatchSelfAdjointEigV2", "SelfAdjointEigV2", dict(input=POSITIVE)),
        ("BatchSvd", "Svd", dict(input=SQUARE)),
        (
            "BatchMatrixBandPart",
            "MatrixBandPart",
            dict(input=SQUARE, num_lower=np.int64(1), num_upper=np.int64(0)),
        ),
        ("BatchMatrixDiag", "MatrixDiag", dict(diagonal=SQUARE)),
        ("BatchMatrixDiagPart", "MatrixDiagPart", dict(input=SQUARE)),
        ("BatchMatrixSetDiag", "MatrixSetDiag", dict(input=SQUARE, diagonal=SQUARE[:, 0])),
        ("BatchFFT", "FFT", dict(input=WAVES)),
        ("BatchIFFT2D", "IFFT2D", dict(input=WAVES)),
        ("BatchFFT3D", "FFT3D", dict(input=WAVES)),
    ],
)
def test_an_op_by_its_former_name(old, now, inputs):
    ours, expected = raw(old, **inputs), raw(now, **inputs)
    for a, b in zip(ours, expected, strict=True) if isinstance(ours, list) else [(ours, expected)]:
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["SelfAdjointEig", "BatchSelfAdjointEig"])
def test_eigenvalues_lie_above_their_vectors(name):
    values, vectors = raw("SelfAdjointEigV2", input=POSITIVE)
    both = raw(name, input=POSITIVE)
    np.testing.assert_array_equal(both[:, 0], values)
    np.testing.assert_array_equal(both[:, 1:], vectors)


def test_the_number_of_the_largest_was_an_attribute():
    values, places = raw("TopK", input=np.float32([3, 1, 2]), k=2)
    assert (values.tolist(), places.tolist()) == ([3, 2], [0, 2])
    assert tf.raw_ops.TopK(input=tf.placeholder(tf.float32, [4, 5]), k=2).values.shape == [4, 2]


def test_the_gradient_of_a_tile_is_the_sum_of_its_copies():
    tiled = np.tile(np.float32([[1, 2, 3]]), (2, 2))
    assert raw("TileGrad", input=tiled, multiples=[2, 2]).tolist() == [[4, 8, 12]]


def test_gradients_of_solids_were_told_the_tensors():
    y = run(tf.nn.conv3d(VOLUME, FILTER, [1] * 5, "SAME"))
    back = raw("Conv3DBackpropInput", input=VOLUME, filter=FILTER, out_backprop=y, **SOLID)
    now = raw("Conv3DBackpropInputV2", input_sizes=VOLUME.shape, filter=FILTER, out_backprop=y, **SOLID)
    np.testing.assert_allclose(back, now, rtol=1e-5)
    back = raw("Conv3DBackpropFilter", input=VOLUME, filter=FILTER, out_backprop=y, **SOLID)
    now = raw("Conv3DBackpropFilterV2", input=VOLUME, filter_sizes=FILTER.shape, out_backprop=y, **SOLID)
    np.testing.assert_allclose(back, now, rtol=1e-5)


def test_contrast_had_limits():
    pictures = np.uint8(_RANDOM.randint(0, 255, (1, 3, 3, 3)))
    ours = raw("AdjustContrast", images=pictures, contrast_factor=2.0, min_value=10.0, max_value=200.0)
    free = raw("AdjustContrastv2", images=np.float32(pictures), contrast_factor=2.0)
    np.testing.assert_allclose(ours, np.clip(free, 10, 200), rtol=1e-5)


def test_old_placeholders_are_fed():
    x = tf.raw_ops.PlaceholderV2(dtype=tf.float32, shape=[2])
    with tf.Session() as session:
        assert session.run(x * 2, {x: [1, 2]}).tolist() == [2, 4]


def test_new_graphs_are_told_what_to_take_instead():
    with (
        tf.Graph().as_default(),
        pytest.raises(NotImplementedError, match="removed in version 13. Use Cholesky"),
    ):
        tf.raw_ops.BatchCholesky(input=POSITIVE)


def test_tables_that_were_references():
    session = tf.Session()
    kinds = dict(key_dtype=tf.string, value_dtype=tf.int64)
    table = tf.raw_ops.HashTable(shared_name="words", **kinds)
    fill = tf.raw_ops.InitializeTable(table_handle=table, keys=[b"a", b"b"], values=np.int64([1, 2]))
    find = tf.raw_ops.LookupTableFind(table_handle=table, keys=[b"b", b"c"], default_value=np.int64(-1))
    session.run(fill)
    assert session.run(find).tolist() == [2, -1]
    assert session.run(tf.raw_ops.LookupTableSize(table_handle=table)) == 2
    later = tf.raw_ops.MutableHashTable(shared_name="more", **kinds)
    session.run(tf.raw_ops.LookupTableInsert(table_handle=later, keys=[b"z"], values=np.int64([7])))
    keys, values = session.run(
        list(tf.raw_ops.LookupTableExport(table_handle=later, Tkeys=tf.string, Tvalues=tf.int64))
    )
    assert (keys.tolist(), values.tolist()) == ([b"z"], [7])
