"""`tf.keras.utils.HDF5Matrix`: an array of an HDF5 file, read part by part."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np


class HDF5Matrix:
    """Rows `start` to `end` of an array in an HDF5 file, each part through `normalizer` if one is given."""

    refs: dict[str, Any] = defaultdict(int)  # files that are open

    def __init__(
        self, datapath: str, dataset: str, start: int = 0, end: int | None = None, normalizer: Any = None
    ) -> None:
        from tensorfleet_legacy.keras.saving.hdf5_format import h5py_module

        if datapath not in self.refs:
            self.refs[datapath] = h5py_module().File(datapath, "r")
        self.data = self.refs[datapath][dataset]
        self.start, self.end = start, self.data.shape[0] if end is None else end
        self.normalizer = normalizer
        first = self.data[0:1]
        self._base_shape = (first if normalizer is None else normalizer(first)).shape[1:]
        self._base_dtype = (first if normalizer is None else normalizer(first)).dtype

    def __len__(self) -> int:
        return self.end - self.start

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            result = self.data[self.start + start : self.start + stop : step]
        elif isinstance(key, (int, np.integer)):
            if not 0 <= key < len(self):
                raise IndexError(f"There is no row {key}: the matrix has {len(self)}.")
            result = self.data[self.start + int(key)]
        elif isinstance(key, (np.ndarray, list)):
            rows = np.asarray(key)
            if rows.size and rows.max() >= len(self):
                raise IndexError(f"There is no row {rows.max()}: the matrix has {len(self)}.")
            order = np.argsort(rows)  # h5py reads rows in their order
            unique, places = np.unique(rows[order], return_inverse=True)
            result = self.data[(self.start + unique).tolist()][places][np.argsort(order)]
        else:
            raise IndexError(f"Rows are a number, a slice or a list of numbers, not {key!r}.")
        return result if self.normalizer is None else self.normalizer(result)

    @property
    def shape(self) -> tuple:
        """The shape, as of an array."""
        return (len(self), *self._base_shape)

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        return self._base_dtype

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return self.data.ndim

    @property
    def size(self) -> int:
        """How many elements it has."""
        return int(np.prod(self.shape))
