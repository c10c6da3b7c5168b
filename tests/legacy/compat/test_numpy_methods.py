"""Methods that numpy's arrays had when scripts for TensorFlow 1 were written."""

import concurrent.futures

import numpy as np
import pytest

from tensorfleet.cli.scripts import alias


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


def test_numbers_are_printed_as_they_were_in_every_thread(installed):
    def shown():
        return str([np.float32(0.5), np.int64(3)])

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert shown() == pool.submit(shown).result(60) == "[0.5, 3]"


def test_numbers_are_printed_as_they_are_without_the_alias():
    before = str([np.float32(0.5)])
    alias.install()
    alias.uninstall()
    assert str([np.float32(0.5)]) == before


def test_the_methods_go_with_the_alias():
    lacking = [name for name in ("tostring", "ptp", "itemset") if not hasattr(np.zeros(1), name)]
    alias.install()
    assert all(hasattr(np.zeros(1), name) for name in lacking)
    alias.uninstall()
    assert not any(hasattr(np.zeros(1), name) for name in lacking)
