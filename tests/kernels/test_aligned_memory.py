"""Arrays start where XLA takes them as they are, and are copied only when they do not."""

import ml_dtypes
import numpy as np
import pytest

from tensorfleet.kernels.aligned_memory import Recycler, aligned, copied, empty, is_fixed


def start(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", ["f4", "f2", "?", "c8", "i8", ml_dtypes.bfloat16, "O"])
def test_new_arrays_of_every_type(dtype):
    for shape in ((), (3,), (0, 5), (100, 50), (7, 333, 2)):
        result = empty(shape, np.dtype(dtype))
        assert (
            result.shape == shape
            and result.dtype == dtype
            and result.flags.c_contiguous
            and result.flags.writeable
        )
        assert result.nbytes < 4096 or dtype == "O" or start(result) % 64 == 0


@pytest.mark.parametrize("dtype", ["f4", ml_dtypes.bfloat16])
def test_what_starts_well_is_not_copied(dtype):
    result = empty((64, 64), np.dtype(dtype))
    result[...] = 1
    assert aligned(result) is result
    result.flags.writeable = False
    assert aligned(result) is result


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


def test_memory_is_used_again_when_nobody_has_it():
    recycler = Recycler()
    first = recycler.empty((100, 50), np.dtype("f4"))
    at = start(first)
    assert at % 64 == 0
    del first
    assert start(recycler.empty((50, 100), np.dtype("i4"))) == at


@pytest.mark.parametrize("hold", [lambda a: a, lambda a: a[3:7, ::2], lambda a: a.view("u1"), memoryview])
def test_memory_that_somebody_has_is_left_alone(hold):
    recycler = Recycler()
    held = []
    for _ in range(10):
        new = recycler.empty((100, 50), np.dtype("f4"))
        assert not any(np.may_share_memory(new, np.asarray(h)) for h in held)
        held.append(hold(new))


def test_memory_that_jax_took_as_it_is_is_left_alone():
    jnp = pytest.importorskip("jax.numpy")
    recycler = Recycler()
    taken = []
    for i in range(8):
        array = recycler.empty((100, 50), np.dtype("f4"))
        array[...] = i
        taken.append(jnp.asarray(array))
    assert [float(t[99, 49]) for t in taken] == list(range(8))


@pytest.mark.parametrize("dtype, shape", [("f4", (3,)), ("O", (10_000,)), ("f4", (4096, 1024))])
def test_what_is_small_or_large_or_objects_is_not_kept(dtype, shape):
    recycler = Recycler()
    assert recycler.empty(shape, np.dtype(dtype)).shape == shape and not recycler._pieces


def test_other_sizes_replace_what_was_kept():
    recycler = Recycler()
    for size in (5_000, 6_000, 7_000, 5_000):
        for _ in range(5):
            assert recycler.empty((size,), np.dtype("u1")).shape == (size,)
        assert [len(memory) for memory, _ in recycler._pieces] == [size + 64]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.complex128])
def test_a_copy_of_a_transposed_array_is_the_same_in_order(dtype):
    values = np.arange(1 << 20).astype(dtype)
    matrix, cube = values.reshape(1024, 1024), values.reshape(64, 128, 128)
    for view in (
        matrix.T,
        matrix[::-1].T,
        matrix[:1000, :777].T,
        cube.T,
        cube.transpose(0, 2, 1),
        cube,
        matrix[:3].T,
        matrix[:, ::-1].T,
        matrix[:, ::2].T,
        np.broadcast_to(values[:1024], (1024, 1024)).T,
        np.broadcast_to(matrix[:, :1], (1024, 1024)).T,
        values.reshape(4, 64, 64, 64).transpose(0, 3, 1, 2),
        values.reshape(4, 64, 64, 64).transpose(3, 0, 2, 1),
        values.reshape(4, 64, 64, 64)[:, 3:50, 1:].transpose(2, 3, 0, 1),
        np.lib.stride_tricks.sliding_window_view(values[:2000], 500).T,
    ):
        result = copied(view)
        assert result.flags.c_contiguous and result.flags.owndata and result is not view
        np.testing.assert_array_equal(result, view)


@pytest.mark.parametrize("shape", [(1024, 1024), (3000, 1000), (8, 300, 1000), (5000, 7)])
def test_what_is_transposed_keeps_every_number(shape):
    """Infinities, zeros with a sign, numbers below the normal ones; in one thread, and large ones in several."""
    odd = np.array([np.inf, -np.inf, -0.0, 1e-45, np.nan, 3.5], np.float32)
    values = np.resize(odd, shape)
    result = copied(values.swapaxes(-1, -2))
    np.testing.assert_array_equal(result.view(np.uint32), values.view(np.uint32).swapaxes(-1, -2))


def test_a_read_only_view_of_memory_that_somebody_can_change_is_not_fixed():
    own = np.zeros(8, np.float32)
    view = own[:4]
    view.flags.writeable = False
    assert not is_fixed(view)
    assert not is_fixed(np.frombuffer(memoryview(bytearray(16)).toreadonly(), np.float32))
    own.flags.writeable = False
    assert is_fixed(own)
