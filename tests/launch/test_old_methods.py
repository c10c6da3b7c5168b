"""Methods that numpy's arrays had when scripts for TensorFlow 1 were written."""

import numpy as np
import pytest

from tensorfleet.launch import alias


@pytest.fixture
def installed():
    alias.install()
    yield
    alias.uninstall()


def test_arrays_give_their_bytes_by_the_old_name(installed):
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert array.tostring() == array.tobytes() and array.T.tostring("F") == array.T.tobytes("F")
    assert np.float32(2).tostring() == np.float32(2).tobytes()


def test_arrays_have_the_other_methods_too(installed):
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert array.ptp() == 5 and array.ptp(axis=1).tolist() == [2, 2] and array.ptp(0).tolist() == [3, 3, 3]
    array.itemset(1, 9)
    array.itemset((1, 2), 7)
    array.itemset(0, 0, 8)
    assert array.tolist() == [[8, 9, 2], [3, 4, 7]]
    assert array.newbyteorder().tolist() == array.view(array.dtype.newbyteorder()).tolist()


def test_the_methods_go_with_the_alias():
    lacking = [name for name in ("tostring", "ptp", "itemset") if not hasattr(np.zeros(1), name)]
    alias.install()
    assert all(hasattr(np.zeros(1), name) for name in lacking)
    alias.uninstall()
    assert not any(hasattr(np.zeros(1), name) for name in lacking)
