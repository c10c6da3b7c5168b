"""MNIST from a directory, or from the ten thousand digits that come with TensorFleet. Never from the network."""

from __future__ import annotations

import csv
import gzip
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly

_BUNDLED = Path(__file__).parent / "data"
_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_TRAINING_DIGITS = 60000  # digits to train on in the full set
_PATHS = (
    "examples.tutorials.mnist.input_data",
    "contrib.learn.datasets.mnist",
    "contrib.learn.python.learn.datasets.mnist",
)


def _under(name: str) -> tuple[str, ...]:
    return tuple(f"{path}.{name}" for path in _PATHS)


def _bases(name: str) -> tuple[str, ...]:
    return tuple(f"contrib.learn.{path}datasets.base.{name}" for path in ("", "python.learn."))


@export(*_under("Datasets"), *_bases("Datasets"))
class Datasets(NamedTuple):
    """Three parts of one set."""

    train: Any
    validation: Any
    test: Any


@export(*_bases("Dataset"))
class Dataset(NamedTuple):
    """Examples with their targets."""

    data: Any
    target: Any


@export(*_bases("load_csv_with_header"))
def load_csv_with_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """A CSV file whose first line begins with the numbers of examples and of features."""
    with open(filename, newline="") as file:
        rows = csv.reader(file)
        examples, features = (int(n) for n in next(rows)[:2])
        data = np.zeros([examples, features], features_dtype)
        target = np.zeros([examples], target_dtype)
        for i, row in enumerate(rows):
            target[i] = np.asarray(row.pop(target_column), target_dtype)
            data[i] = np.asarray(row, features_dtype)
    return Dataset(data, target)


@export(*_bases("load_csv_without_header"))
def load_csv_without_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """A CSV file of examples only."""
    with open(filename, newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    target = np.array([row.pop(target_column) for row in rows], target_dtype)
    return Dataset(np.array(rows, features_dtype), target)


@export(*_under("DataSet"))
class DataSet:
    """Images with their labels, handed out in batches.

    Float images are scaled to [0, 1]; `reshape` makes each of them one row.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = dtypes.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        dtype = dtypes.as_dtype(dtype).base_dtype
        if dtype not in (dtypes.uint8, dtypes.float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        self._fake = fake_data
        self.one_hot = one_hot
        self._random = np.random.RandomState(seed)
        self._num_examples = 10000
        if not fake_data:
            if len(images) != len(labels):
                raise ValueError(f"There are {len(images)} images, but {len(labels)} labels.")
            self._num_examples = len(images)
            if reshape:
                images = images.reshape(len(images), -1)
            if dtype == dtypes.float32:
                images = images.astype(np.float32) * np.float32(1.0 / 255.0)
        self._images = images
        self._labels = labels
        self._epochs_completed = 0
        self._index_in_epoch = 0

    images = readonly("_images", "All images, in the order of the current epoch.")
    labels = readonly("_labels", "All labels, in the order of the images.")
    num_examples = readonly("_num_examples", "How many there are.")
    epochs_completed = readonly("_epochs_completed", "How often `next_batch` went through all of them.")

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """The next images and labels; a batch at an epoch's end is filled up from the next epoch."""
        if fake_data:
            label: Any = [1] + [0] * 9 if self.one_hot else 0
            return [[1] * 784 for _ in range(batch_size)], [label for _ in range(batch_size)]
        start = self._index_in_epoch
        if start == 0 and self._epochs_completed == 0 and shuffle:
            self._shuffle()
        if start + batch_size <= self._num_examples:
            self._index_in_epoch = start + batch_size
            return self._images[start : start + batch_size], self._labels[start : start + batch_size]
        images, labels = self._images[start:], self._labels[start:]
        self._epochs_completed += 1
        if shuffle:
            self._shuffle()
        self._index_in_epoch = left = batch_size - len(images)
        more = self._images[:left], self._labels[:left]
        return np.concatenate([images, more[0]]), np.concatenate([labels, more[1]])

    def _shuffle(self) -> None:
        order = self._random.permutation(self._num_examples)
        self._images, self._labels = self._images[order], self._labels[order]


@export(*_under("read_data_sets"))
def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = dtypes.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str | None = None,
) -> Datasets:
    """MNIST to train on, to validate with, and to test with.

    Read from the four IDX files in `train_dir`, compressed or not. When they are not there, from the ten
    thousand digits that come with TensorFleet; then `validation_size` is taken in proportion. Nothing is
    downloaded, whatever `source_url` says.
    """
    options = {"one_hot": one_hot, "dtype": dtype, "reshape": reshape, "seed": seed}
    if fake_data:
        empty = np.zeros([0])
        return Datasets(*(DataSet(empty, empty, True, **options) for _ in range(3)))
    files = _find(Path(train_dir or "."))
    if files is None:
        logging.warning(
            "No MNIST files in %s: using the 10000 digits that come with TensorFleet (put %s.gz and the other "
            "three there to train on all).",
            train_dir or ".",
            _FILES[0],
        )
        files = [_BUNDLED / f"{name}.gz" for name in _FILES]
    images, labels, test_images, test_labels = (_read(path) for path in files)
    if files[0].parent == _BUNDLED:
        validation_size = round(validation_size * len(images) / _TRAINING_DIGITS)
    if not 0 <= validation_size <= len(images):
        raise ValueError(
            f"Validation size should be between 0 and {len(images)}. Received: {validation_size}."
        )
    if one_hot:
        labels, test_labels = dense_to_one_hot(labels, 10), dense_to_one_hot(test_labels, 10)
    cut = validation_size
    return Datasets(
        DataSet(images[cut:], labels[cut:], **options),
        DataSet(images[:cut], labels[:cut], **options),
        DataSet(test_images, test_labels, **options),
    )


@export("contrib.learn.datasets.mnist.load_mnist", "contrib.learn.python.learn.datasets.mnist.load_mnist")
def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """MNIST with labels as numbers."""
    return read_data_sets(train_dir)


@export("keras.datasets.mnist.load_data", "python.keras.datasets.mnist.load_data")
def load_data(path: str = "mnist.npz") -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """`(x_train, y_train), (x_test, y_test)` from a file here or in ~/.keras/datasets, else the digits of TensorFleet."""
    from tensorfleet_legacy.keras.utils.data_utils_get_file import keras_folder

    for place in (Path(path), keras_folder() / "datasets" / path):
        if place.is_file():
            with np.load(place, allow_pickle=False) as file:
                return (file["x_train"], file["y_train"]), (file["x_test"], file["y_test"])
    images, labels, test_images, test_labels = (_read(_BUNDLED / f"{name}.gz") for name in _FILES)
    return (images[..., 0], labels), (test_images[..., 0], test_labels)


@export(*_under("dense_to_one_hot"))
def dense_to_one_hot(labels_dense: Any, num_classes: int) -> Any:
    """Class numbers as rows with a single one."""
    return np.eye(num_classes)[np.asarray(labels_dense, np.int64).ravel()]


def _find(directory: Path) -> list[Path] | None:
    result = []
    for name in _FILES:
        here = [p for p in (directory / f"{name}.gz", directory / name) if p.is_file()]
        if not here:
            return None
        result.append(here[0])
    return result


def _read(path: Path) -> np.ndarray:
    """The array of an IDX file: its rank and sizes come first."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    zeros, kind, rank = struct.unpack_from(">HBB", data)
    if zeros != 0 or kind != 8 or rank not in (1, 3):
        raise ValueError(f"Invalid magic number {int.from_bytes(data[:4], 'big')} in MNIST file: {path}")
    sizes = struct.unpack_from(f">{rank}I", data, 4)
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * rank)
    if values.size != np.prod(sizes):
        raise ValueError(f"{path} is cut short: {values.size} bytes where {np.prod(sizes)} were expected.")
    return values.reshape(*sizes, 1) if rank == 3 else values
