"""Running sums and products along an axis."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.mark.parametrize("axis", [0, 1, 2, -3])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
def test_scans_run_along_any_axis_of_large_arrays(session, axis, reverse, dtype):
    x = (np.random.RandomState(1).rand(7, 9, 80) * 2).astype(dtype)
    turned = np.flip(x, axis) if reverse else x
    for function, f in ((tf.cumsum, np.cumsum), (tf.cumprod, np.cumprod)):
        result = session.run(function(x, axis, reverse=reverse))
        wanted = f(turned, axis, dtype=dtype)
        np.testing.assert_allclose(result, np.flip(wanted, axis) if reverse else wanted, rtol=1e-5)
        assert result.dtype == dtype


def test_an_exclusive_scan_of_nothing_is_nothing(session):
    empty = np.zeros((0, 100), np.float32)
    assert session.run(tf.cumprod(empty, 0, exclusive=True)).shape == (0, 100)
    assert session.run(tf.cumsum(empty, 1)).shape == (0, 100)
    assert session.run(tf.cumsum(np.zeros((3, 0, 4), np.float32), 0)).shape == (3, 0, 4)
