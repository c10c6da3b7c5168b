"""Pickles of data sets are read, and nothing that could run."""

import io
import os
import pickle

import numpy as np
import pytest

from tensorfleet_legacy.keras.datasets import plain_pickles


def test_arrays_of_lists_come_back(tmp_path):
    texts = np.empty(2, object)
    texts[:] = [[1, 2], [3]]
    np.savez(tmp_path / "texts.npz", x=texts, y=np.arange(4).reshape(2, 2))
    result = plain_pickles.load_arrays(str(tmp_path / "texts.npz"))
    assert result["x"].tolist() == [[1, 2], [3]]
    assert result["y"].tolist() == [[0, 1], [2, 3]]


def test_batches_of_python_2_come_back():
    written = pickle.dumps({b"data": np.uint8([[1, 2]]), b"labels": [3]}, protocol=2)
    result = plain_pickles.load(io.BytesIO(written), encoding="bytes")
    assert (result[b"data"].tolist(), result[b"labels"]) == ([[1, 2]], [3])


def test_what_would_run_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/ran",)

    with pytest.raises(pickle.UnpicklingError, match="which is not plain data"):
        plain_pickles.load(io.BytesIO(pickle.dumps(Evil())))
    assert not (tmp_path / "ran").exists()
