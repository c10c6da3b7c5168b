"""Files of data sets that are written by pickle: of what these may hold, only arrays, texts, numbers and lists are read."""

from __future__ import annotations

import os
import pickle
import zipfile
from typing import IO, Any

import numpy as np

# What arrays are made of in a pickle; anything else that a file names could be code.
_DATA = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """The few classes of data."""
        if (module, name) not in _DATA:
            raise pickle.UnpicklingError(
                f"The file holds {module}.{name}, which is not plain data. Take the file that Keras itself would download."
            )
        return super().find_class(module, name)


def load(file: IO[bytes], encoding: str = "ASCII") -> Any:
    """The contents of a pickle."""
    return _Plain(file, encoding=encoding).load()


def load_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, whose elements may be lists."""
    with zipfile.ZipFile(path) as archive:
        return {name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist()}


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
        if dtype.hasobject:
            return load(file).reshape(shape)
    with archive.open(name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
