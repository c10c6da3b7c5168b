"""Arrays start where XLA takes them as they are, and are copied only when they do not."""

import ml_dtypes
import numpy as np
import pytest

from tensorfleet.ops.memory import aligned, empty


def start(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", ["f4", "f2", "?", "c8", "i8", ml_dtypes.bfloat16, "O"])
def test_new_arrays_of_every_type(dtype):
    for shape in ((), (3,), (0, 5), (100, 50), (7, 333, 2)):
        made = empty(shape, np.dtype(dtype))
        assert (
            made.shape == shape and made.dtype == dtype and made.flags.c_contiguous and made.flags.writeable
        )
        assert made.nbytes < 4096 or dtype == "O" or start(made) % 64 == 0


@pytest.mark.parametrize("dtype", ["f4", ml_dtypes.bfloat16])
def test_what_starts_well_is_not_copied(dtype):
    made = empty((64, 64), np.dtype(dtype))
    made[...] = 1
    assert aligned(made) is made
    made.flags.writeable = False
    assert aligned(made) is made


@pytest.mark.parametrize("dtype", ["f4", ml_dtypes.bfloat16])
def test_what_does_not_is(dtype):
    whole = empty((65 * 64,), np.dtype(dtype))
    whole[...] = np.arange(65 * 64) % 100
    for array in (whole[1:4097], whole[:4096].reshape(64, 64).T, whole[::2]):
        copy = aligned(array)
        assert copy is not array and start(copy) % 64 == 0 and copy.flags.c_contiguous
        np.testing.assert_array_equal(copy, array)
    small = whole[1:5]
    assert aligned(small) is small
