"""`tf.keras.datasets`: sets of data from files on this machine."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.datasets import plain_pickles
from tensorfleet_legacy.keras.utils.data_utils_get_file import keras_folder


def _located(path: str) -> Path:
    """A file by its path, or in ~/.keras/datasets."""
    home = keras_folder() / "datasets"
    for result in (Path(path), home / path):
        if result.is_file():
            return result
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


# -- CIFAR: small images of ten or a hundred kinds --------------------------------------------------------

Split = tuple[tuple[Any, Any], tuple[Any, Any]]


def _pickled(path: str, labels: str) -> tuple[np.ndarray, np.ndarray]:
    """The images and the labels of a batch, as its authors wrote them."""
    with open(_located(path), "rb") as file:
        by_name = {key.decode(): value for key, value in plain_pickles.load(file, encoding="bytes").items()}
    return by_name["data"].reshape(-1, 3, 32, 32), np.asarray(by_name[labels])


def _images(train: tuple, test: tuple) -> Split:
    def part(images: np.ndarray, labels: np.ndarray) -> tuple[Any, Any]:
        last = state.image_data_format() == "channels_last"
        return (images.transpose(0, 2, 3, 1) if last else images), labels.reshape(-1, 1)

    return part(*train), part(*test)


def cifar10() -> Split:
    """`(x_train, y_train), (x_test, y_test)` from the files of ~/.keras/datasets/cifar-10-batches-py."""
    folder = "cifar-10-batches-py"
    batches = [_pickled(f"{folder}/data_batch_{i}", "labels") for i in range(1, 6)]
    images, labels = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    return _images((images, labels.astype("uint8")), _pickled(f"{folder}/test_batch", "labels"))


def cifar100(label_mode: str = "fine") -> Split:
    """`(x_train, y_train), (x_test, y_test)` from the files of ~/.keras/datasets/cifar-100-python."""
    if label_mode not in ("fine", "coarse"):
        raise ValueError('`label_mode` must be one of `"fine"`, `"coarse"`.')
    parts = [_pickled(f"cifar-100-python/{part}", f"{label_mode}_labels") for part in ("train", "test")]
    return _images(*parts)


# -- texts as numbers of words ----------------------------------------------------------------------------


def _marked(
    texts: list, start_char: int | None, index_from: int, skip_top: int, num_words: int, oov_char: int | None
) -> list:
    """Texts with a mark at the start, and one (or nothing) for words that are too frequent or too rare."""
    if start_char is not None:
        texts = [[start_char, *(w + index_from for w in text)] for text in texts]
    elif index_from:
        texts = [[w + index_from for w in text] for text in texts]
    if oov_char is None:
        return [[w for w in text if skip_top <= w < num_words] for text in texts]
    return [[w if skip_top <= w < num_words else oov_char for w in text] for text in texts]


def _short(texts: list, labels: Any, maxlen: int | None) -> tuple[list, Any]:
    if not maxlen:
        return texts, labels
    kept = [i for i, text in enumerate(texts) if len(text) < maxlen]
    if not kept:
        raise ValueError(
            f"After filtering for sequences shorter than maxlen={maxlen}, no sequence was kept. Increase maxlen."
        )
    return [texts[i] for i in kept], np.asarray(labels)[kept]


def _ragged(texts: list) -> np.ndarray:
    result = np.empty(len(texts), dtype=object)
    result[:] = texts
    return result


def _shuffled(random: Any, x: Any, y: Any) -> tuple[Any, Any]:
    order = np.arange(len(x))
    random.shuffle(order)
    return x[order], y[order]


def _old_name(num_words: int | None, kwargs: dict[str, Any]) -> int | None:
    given = kwargs.pop("nb_words", num_words)
    if kwargs:
        raise TypeError(f"Unrecognized keyword arguments: {kwargs}")
    return given


def imdb(
    path: str = "imdb.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
    **kwargs: Any,
) -> Split:
    """`(x_train, y_train), (x_test, y_test)`: reviews of films as lists of the numbers of their words; 1 is praise."""
    num_words = _old_name(num_words, kwargs)
    file = plain_pickles.load_arrays(_located(path))
    train, test = [(file[f"x_{part}"], file[f"y_{part}"]) for part in ("train", "test")]
    random = np.random.RandomState(seed)
    train, test = _shuffled(random, *train), _shuffled(random, *test)
    texts = _marked([*train[0], *test[0]], start_char, index_from, 0, 1 << 62, None)
    at, labels = len(train[0]), np.concatenate([train[1], test[1]])
    texts, labels = _short(texts, labels, maxlen)
    words = num_words or max(max(text) for text in texts) + 1
    result = _ragged(_marked(texts, None, 0, skip_top, words, oov_char))
    return (result[:at], labels[:at]), (result[at:], labels[at:])


def reuters(
    path: str = "reuters.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    test_split: float = 0.2,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
    **kwargs: Any,
) -> Split:
    """`(x_train, y_train), (x_test, y_test)`: news as lists of the numbers of their words, of 46 topics."""
    num_words = _old_name(num_words, kwargs)
    file = plain_pickles.load_arrays(_located(path))
    texts, labels = _shuffled(np.random.RandomState(seed), file["x"], file["y"])
    result = _marked(list(texts), start_char, index_from, 0, 1 << 62, None)
    result, labels = _short(result, labels, maxlen)
    words = num_words or max(max(text) for text in result) + 1
    output = _ragged(_marked(result, None, 0, skip_top, words, oov_char))
    at = int(len(output) * (1 - test_split))
    return (output[:at], labels[:at]), (output[at:], labels[at:])


def imdb_word_index(path: str = "imdb_word_index.json") -> dict[str, int]:
    """The numbers of words."""
    return json.loads(_located(path).read_text())


def reuters_word_index(path: str = "reuters_word_index.json") -> dict[str, int]:
    """The numbers of words."""
    return json.loads(_located(path).read_text())
