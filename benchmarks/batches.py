"""The numbers that every library is given: sizes, batches and initial weights of the works, as NumPy arrays.

works.py and models.py (TensorFlow and TensorFleet), peers_torch.py and peers_jax.py build the same programs from them.
Only TensorFlow's initializers make their own weights when a work is measured; tests give all libraries the same.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

BATCHES = 64  # that are made before the first step; the steps go round them
BUCKETS = 10_000
_VOCABULARY = 5_000

T = TypeVar("T")
Arrays = tuple[np.ndarray, ...]


def scaled(count: int, size: float) -> int:
    return max(1, round(count * size))


# -- sizes: what of a work is halved or doubled ----------------------------------------------------------


@dataclass(frozen=True)
class Transformer:
    """Attention over words; its width is scaled."""

    width: int
    length: int = 64
    heads: int = 4
    words: int = 2000
    layers: int = 4
    batch: int = 16
    dropout: float = 0.1

    @classmethod
    def of(cls, size: float) -> Transformer:
        # Heads share the width evenly.
        return cls(width=4 * scaled(64, size))


@dataclass(frozen=True)
class Embedding:
    """Two tables of words, sampled softmax; the batch and the samples are scaled."""

    rows: int
    batch: int
    samples: int
    width: int = 128

    @classmethod
    def of(cls, rows: int, size: float) -> Embedding:
        return cls(rows, scaled(128, size), scaled(64, size))


@dataclass(frozen=True)
class WideDeep:
    """Columns of words, embedded and weighed; the number of columns is scaled."""

    columns: int
    width: int = 16
    numbers: int = 10
    layers: tuple[int, ...] = (256, 128)
    batch: int = 512

    @classmethod
    def of(cls, size: float) -> WideDeep:
        return cls(scaled(20, size))

    def in_order(self) -> list[int]:
        """The columns as `tf.feature_column.input_layer` puts them side by side: by name."""
        return sorted(range(self.columns), key=lambda i: f"c{i}_embedding")


@dataclass(frozen=True)
class Sentences:
    """Sentences of many lengths; the lengths are scaled."""

    shortest: int
    longest: int
    units: int = 128
    words: int = 1000
    batch: int = 32

    @classmethod
    def of(cls, size: float) -> Sentences:
        return cls(scaled(10, size), scaled(40, size))


# -- batches -------------------------------------------------------------------------------------------


def images(count: int) -> Arrays:
    """Random images of 784 pixels and one-hot labels."""
    random = np.random.default_rng(7)
    classes = np.eye(10, dtype=np.float32)[random.integers(0, 10, count)]
    return random.random((count, 784), dtype=np.float32), classes


def pictures() -> Arrays:
    """32 pictures of 32 x 32 in three colours, and their classes."""
    random = np.random.default_rng(7)
    return random.random((32, 32, 32, 3), np.float32), random.integers(0, 10, 32)


def pairs_of_words(config: Embedding) -> Arrays:
    """Words and the words that follow them."""
    random = np.random.default_rng(7)
    return random.integers(0, config.rows, config.batch), random.integers(0, config.rows, (config.batch, 1))


def texts(config: Transformer) -> list[Arrays]:
    """Words given and wanted, batch by batch."""
    random = np.random.default_rng(7)
    shape = (config.batch, config.length)
    return [tuple(random.integers(0, config.words, shape) for _ in range(2)) for _ in range(BATCHES)]


def sentences(config: Sentences) -> list[Arrays]:
    """Words given and wanted, a row for each position: all sentences of a batch have one length, the next has another."""
    random = np.random.default_rng(7)
    lengths = random.integers(config.shortest, config.longest, BATCHES)
    return [tuple(random.integers(0, config.words, (n, config.batch)) for _ in range(2)) for n in lengths]


def clicks(config: WideDeep, hashed: bool) -> list[Arrays]:
    """Batches: an array for each column, then numbers and clicks. Words as bytes, or the bucket of each if `hashed`."""
    random = np.random.default_rng(7)
    vocabulary = np.array([b"word%d" % i for i in range(_VOCABULARY)], object)
    if hashed:
        vocabulary = buckets(vocabulary)
    shape = (config.batch,)

    def batch() -> Arrays:
        columns = [vocabulary[random.integers(0, _VOCABULARY, shape)] for _ in range(config.columns)]
        numbers = random.random((config.batch, config.numbers), np.float32)
        return *columns, numbers, random.integers(0, 2, (config.batch, 1)).astype(np.float32)

    return [batch() for _ in range(BATCHES)]


def buckets(words: np.ndarray) -> np.ndarray:
    """The bucket of each word by CRC-32: how PyTorch and JAX, which have no strings, get numbers in a Python program."""
    crc32 = zlib.crc32
    return np.array([crc32(word) % BUCKETS for word in words], np.int64)


def forever(all_batches: Sequence[T]) -> Iterator[T]:
    """The batches of one step after the other."""
    return itertools.cycle(all_batches)


def forever_as_numbers(config: WideDeep, hashed: bool) -> Iterator[Arrays]:
    """The batches of `clicks` with numbers for words. Unless `hashed` before, words are hashed when their step begins."""
    for batch in itertools.cycle(clicks(config, hashed)):
        words, others = batch[: config.columns], batch[config.columns :]
        yield *(words if hashed else map(buckets, words)), *others


class Candidates:
    """Draws different classes, frequent words more often, as TensorFlow's log-uniform sampler does."""

    def __init__(self, config: Embedding) -> None:
        self._rows, self._count = config.rows, config.samples
        self._random = np.random.default_rng(7)

    def draw(self) -> tuple[np.ndarray, int]:
        """The classes, and how many draws it took to find so many different ones."""
        draws = self._random.random(4 * self._count)
        classes = (np.exp(draws * np.log(self._rows + 1.0)) - 1.0).astype(np.int64) % self._rows
        first = np.sort(np.unique(classes, return_index=True)[1])[: self._count]
        if len(first) < self._count:
            return self.draw()
        return classes[first], int(first[-1]) + 1

    def log_expected(self, classes: np.ndarray, tries: int) -> np.ndarray:
        """The logarithm of how often each class is expected among so many draws."""
        share = np.log1p(1.0 / (classes + 1.0)) / np.log(self._rows + 1.0)
        return np.log(-np.expm1(tries * np.log1p(-share))).astype(np.float32)


# -- initial weights, by the names of TensorFlow's variables ----------------------------------------------

Shapes = dict[str, tuple[int, ...]]


def mlp_shapes(hidden: int) -> Shapes:
    return {"w1": (784, hidden), "b1": (hidden,), "w2": (hidden, 10), "b2": (10,)}


def cnn_shapes(filters: tuple[int, int], hidden: int) -> Shapes:
    first, second = filters
    convolutions = {"kernel0": (5, 5, 1, first), "bias0": (first,)}
    convolutions |= {"kernel1": (5, 5, first, second), "bias1": (second,)}
    return convolutions | {"w1": (49 * second, hidden), "b1": (hidden,), "w2": (hidden, 10), "b2": (10,)}


def lstm_shapes(units: int) -> Shapes:
    return {"gates": (28 + units, 4 * units), "biases": (4 * units,), "w": (units, 10), "b": (10,)}


def embedding_shapes(config: Embedding) -> Shapes:
    table = (config.rows, config.width)
    return {"vectors": table, "weights": table, "biases": (config.rows,)}


def resnet_blocks(width: int) -> list[tuple[str, int, int, int]]:
    """Name, channels in and out, and stride of each block of the network of 20 layers."""
    found, before = [], width
    for stage in range(3):
        for block in range(3):
            found.append((f"block{stage}{block}", before, width << stage, 2 if stage and not block else 1))
            before = width << stage
    return found


def resnet_shapes(width: int) -> Shapes:
    shapes: Shapes = {"first": (3, 3, 3, width), "logits/kernel": (4 * width, 10), "logits/bias": (10,)}
    for name, before, filters, stride in resnet_blocks(width):
        shapes |= {f"{name}/a": (3, 3, before, filters), f"{name}/b": (3, 3, filters, filters)}
        shapes |= {f"{name}/{n}/{part}": (filters,) for n in ("na", "nb") for part in ("scale", "shift")}
        if stride > 1:
            shapes[f"{name}/around"] = (1, 1, before, filters)
    return shapes


def dense_shapes(name: str, inputs: int, units: int) -> Shapes:
    return {f"{name}/kernel": (inputs, units), f"{name}/bias": (units,)}


def transformer_shapes(config: Transformer) -> Shapes:
    width = config.width
    shapes: Shapes = {"words": (config.words, width)} | dense_shapes("logits", width, config.words)
    for i in range(config.layers):
        for name in ("query", "key", "value", "joined"):
            shapes |= dense_shapes(f"layer{i}/{name}", width, width)
        shapes |= dense_shapes(f"layer{i}/inner", width, 4 * width)
        shapes |= dense_shapes(f"layer{i}/outer", 4 * width, width)
        shapes |= {f"layer{i}/{name}": (width,) for name in ("before", "between")}
    return shapes


def wide_deep_shapes(config: WideDeep) -> Shapes:
    shapes: Shapes = {"linear_model/bias_weights": (1,)}
    for i in range(config.columns):
        shapes[f"input_layer/c{i}_embedding/embedding_weights"] = (BUCKETS, config.width)
        shapes[f"linear_model/c{i}/weights"] = (BUCKETS, 1)
    inputs = config.columns * config.width + config.numbers
    for i, units in enumerate(config.layers):
        shapes |= dense_shapes(f"layer{i}", inputs, units)
        inputs = units
    return shapes | dense_shapes("logits", inputs, 1)


def sentences_shapes(config: Sentences) -> Shapes:
    units, words = config.units, config.words
    gates = {"words": (words, units), "gates": (2 * units, 4 * units)}
    return gates | dense_shapes("logits", units, words)


def weights(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Initial values: uniform by the size of the layer; scales are ones, other vectors zeros."""
    random = np.random.default_rng(11)
    made = {}
    for name, shape in shapes.items():
        if len(shape) > 1:
            limit = np.sqrt(6.0 / (np.prod(shape[:-1]) + shape[-1]))
            made[name] = random.uniform(-limit, limit, shape).astype(np.float32)
        else:
            ones = name.endswith(("/scale", "/before", "/between"))
            made[name] = np.full(shape, float(ones), np.float32)
    return made
