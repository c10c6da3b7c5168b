"""`tf.keras.datasets`: sets of data from files on this machine."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np


def _located(path: str) -> Path:
    """A file by its path, or in ~/.keras/datasets."""
    home = Path(os.path.expanduser("~")) / ".keras" / "datasets"
    for found in (Path(path), home / path):
        if found.is_file():
            return found
    raise FileNotFoundError(
        f"There is no file {path}, neither here nor in {home}. Data is not downloaded: put the file there."
    )


def fashion_mnist() -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """`(x_train, y_train), (x_test, y_test)` from the four files in ~/.keras/datasets/fashion-mnist."""
    parts = []
    for part in ("train", "t10k"):
        labels = _bytes(f"fashion-mnist/{part}-labels-idx1-ubyte.gz")[8:]
        images = _bytes(f"fashion-mnist/{part}-images-idx3-ubyte.gz")[16:].reshape(len(labels), 28, 28)
        parts.append((images, labels))
    return parts[0], parts[1]


def _bytes(path: str) -> np.ndarray:
    with gzip.open(_located(path)) as file:
        return np.frombuffer(file.read(), np.uint8)


def boston_housing(
    path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """`(x_train, y_train), (x_test, y_test)` from a file with the arrays x and y."""
    if not 0 <= test_split < 1:
        raise ValueError(f"`test_split` must be at least 0 and less than 1, got {test_split}.")
    with np.load(_located(path), allow_pickle=False) as file:
        x, y = file["x"], file["y"]
    order = np.arange(len(x))
    np.random.RandomState(seed).shuffle(order)
    x, y = x[order], y[order]
    at = int(len(x) * (1 - test_split))
    return (x[:at], y[:at]), (x[at:], y[at:])
