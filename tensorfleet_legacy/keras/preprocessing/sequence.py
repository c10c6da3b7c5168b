"""`tf.keras.preprocessing.sequence`: lists of numbers as arrays."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

from tensorfleet_legacy.keras.engine.data_adapter import Sequence


def pad_sequences(
    sequences: Any,
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> np.ndarray:
    """Sequences as rows of one length: short ones are filled with `value`, long ones cut, before or after."""
    if not hasattr(sequences, "__len__"):
        raise ValueError("`sequences` must be iterable.")
    for row in sequences:
        if not hasattr(row, "__len__"):
            raise ValueError(f"`sequences` must be a list of iterables. Found non-iterable: {row}")
    for name, where in (("Truncating", truncating), ("Padding", padding)):
        if where not in ("pre", "post"):
            raise ValueError(f'{name} type "{where}" not understood')
    length = max((len(row) for row in sequences), default=0) if maxlen is None else maxlen
    shape = next((np.asarray(row).shape[1:] for row in sequences if len(row)), ())
    result: np.ndarray = np.full((len(sequences), length, *shape), value, dtype=dtype)
    for i, row in enumerate(sequences):
        if not len(row):
            continue
        part = np.asarray(row[-length:] if truncating == "pre" else row[:length], dtype=dtype)
        if length == 0:
            continue
        if part.shape[1:] != shape:
            raise ValueError(
                f"Shape of sample {part.shape[1:]} of sequence at position {i} is different from expected shape {shape}"
            )
        if padding == "post":
            result[i, : len(part)] = part
        else:
            result[i, -len(part) :] = part
    return result


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray:
    """The probability to keep each word, by its rank, so that frequent words do not drown the others."""
    ranks = np.arange(size)
    ranks[0] = 1
    frequency = ranks * (np.log(ranks) + 0.577) + 0.5 - 1.0 / (12.0 * ranks)
    scaled = sampling_factor * frequency
    return np.minimum(1.0, scaled / np.sqrt(scaled))


def skipgrams(
    sequence: Any,
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Any = None,
    seed: int | None = None,
) -> tuple[list, list]:
    """(pairs of words, labels): 1 for a word beside another one in the sequence, 0 for one drawn at random."""
    couples: list = []
    for i, word in enumerate(sequence):
        if not word or (sampling_table is not None and sampling_table[word] < random.random()):
            continue
        near = range(max(0, i - window_size), min(len(sequence), i + window_size + 1))
        couples += [[word, sequence[j]] for j in near if j != i and sequence[j]]
    yes, no = ([0, 1], [1, 0]) if categorical else (1, 0)
    labels: list = [yes] * len(couples)
    if negative_samples > 0:
        count = int(len(labels) * negative_samples)
        words = [pair[0] for pair in couples]
        random.shuffle(words)
        couples += [[words[i % len(words)], random.randint(1, vocabulary_size - 1)] for i in range(count)]
        labels += [no] * count
    if shuffle:
        start = random.randint(0, 10_000_000) if seed is None else seed
        for values in (couples, labels):  # both in the same order
            random.seed(start)
            random.shuffle(values)
    return couples, labels


class TimeseriesGenerator(Sequence):
    """Windows of `length` steps of a series, with the target that comes after each."""

    def __init__(
        self,
        data: Any,
        targets: Any,
        length: int,
        sampling_rate: int = 1,
        stride: int = 1,
        start_index: int = 0,
        end_index: int | None = None,
        shuffle: bool = False,
        reverse: bool = False,
        batch_size: int = 128,
    ) -> None:
        if len(data) != len(targets):
            raise ValueError(
                f"Data and targets have to be of same length. Data length is {len(data)} while target length is "
                f"{len(targets)}"
            )
        self.data, self.targets, self.length = data, targets, length
        self.sampling_rate, self.stride, self.batch_size = sampling_rate, stride, batch_size
        self.start_index = start_index + length
        self.end_index = len(data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse = shuffle, reverse
        if self.start_index > self.end_index:
            raise ValueError(
                f"`start_index+length={self.start_index} > end_index={self.end_index}` is disallowed, as no part of the "
                "sequence would be left to be used as current step."
            )

    def __len__(self) -> int:
        wide = self.batch_size * self.stride
        return (self.end_index - self.start_index + wide) // wide

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """A batch of windows and targets."""
        if self.shuffle:
            rows = np.random.randint(self.start_index, self.end_index + 1, size=self.batch_size)
        else:
            first = self.start_index + self.batch_size * self.stride * index
            last = min(first + self.batch_size * self.stride, self.end_index + 1)
            rows = np.arange(first, last, self.stride)
        windows = np.array([self.data[r - self.length : r : self.sampling_rate] for r in rows])
        targets = np.array([self.targets[r] for r in rows])
        return (windows[:, ::-1, ...] if self.reverse else windows), targets

    def get_config(self) -> dict[str, Any]:
        """The data and the options, as JSON can hold them."""
        plain = {key: np.asarray(getattr(self, key)).tolist() for key in ("data", "targets")}
        names = ("length", "sampling_rate", "stride", "start_index", "end_index")
        own = {key: getattr(self, key) for key in (*names, "shuffle", "reverse", "batch_size")}
        return {**{key: json.dumps(value) for key, value in plain.items()}, **own}

    def to_json(self, **kwargs: Any) -> str:
        """The data and the options as text."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)
