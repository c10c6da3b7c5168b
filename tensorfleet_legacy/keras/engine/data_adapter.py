"""Where the batches of training come from: arrays, generators, sequences, datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorfleet.api.data.dataset import Dataset
from tensorfleet.api.data.iterator import Iterator as DatasetIterator
from tensorfleet.base import logging, nest
from tensorfleet.base.errors import OutOfRangeError
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import backend as state


class Sequence:
    """Base of data by batches: `__getitem__(i)` gives batch `i` and `__len__` how many there are in an epoch."""

    def __getitem__(self, index: int) -> Any:
        """A batch."""
        raise TypeError(f"{type(self).__name__} must define __getitem__(index).")

    def __len__(self) -> int:
        """How many batches."""
        raise TypeError(f"{type(self).__name__} must define __len__().")

    def on_epoch_end(self) -> None:
        """Called after each epoch."""

    def __iter__(self) -> Iterator:
        """All batches, over and over."""
        while True:
            for i in range(len(self)):
                yield self[i]


class Batch:
    """The arrays of one step, in the order the model takes them, and how many examples they are."""

    __slots__ = ("inputs", "size", "targets", "weights")

    def __init__(self, inputs: list, targets: list, weights: list, size: int) -> None:
        self.inputs, self.targets, self.weights, self.size = inputs, targets, weights, size

    def part(self, rows: slice) -> Batch:
        """Some of the examples."""
        cut = [[None if a is None else a[rows] for a in k] for k in (self.inputs, self.targets, self.weights)]
        return Batch(cut[0], cut[1], cut[2], len(range(*rows.indices(self.size))))


class ArrayBatches:
    """Arrays, cut into batches; or all of them in each of `steps` steps."""

    def __init__(
        self,
        inputs: list,
        targets: list,
        weights: list,
        batch_size: int | None,
        shuffle: Any,
        steps: int | None,
    ) -> None:
        self._arrays = (inputs, targets, weights)
        self.samples = len(inputs[0]) if inputs else 0
        self.steps, self._shuffle = steps, shuffle
        self.batch_size = batch_size or 32
        self.by_steps = steps is not None

    def first(self) -> Batch:
        """All arrays, for their types and shapes."""
        inputs, targets, weights = self._arrays
        return Batch(inputs, targets, weights, self.samples)

    @property
    def lists(self) -> list:
        """All arrays one behind the other: inputs, targets, weights, as callbacks see data for validation."""
        inputs, targets, weights = self._arrays
        ones = np.ones(self.samples, state.floatx())
        return [*inputs, *targets, *(ones if w is None else w for w in weights)]

    def epoch(self) -> Iterator[Batch]:
        """The batches of one pass."""
        inputs, targets, weights = self._arrays
        if self.steps is not None:
            whole = self.first()
            for _ in range(self.steps):
                yield whole
            return
        size, total = self.batch_size, self.samples
        order = self._order()
        for start in range(0, total, size):
            rows: Any = slice(start, start + size) if order is None else order[start : start + size]
            yield Batch(
                [a[rows] for a in inputs],
                [None if a is None else a[rows] for a in targets],
                [None if a is None else a[rows] for a in weights],
                min(size, total - start),
            )

    def _order(self) -> Any:
        if not self._shuffle:
            return None
        order = np.arange(self.samples)
        if self._shuffle == "batch":
            whole = self.samples // self.batch_size * self.batch_size
            rows = order[:whole].reshape((-1, self.batch_size))
            np.random.shuffle(rows)
            return np.append(rows.flatten(), order[whole:])
        np.random.shuffle(order)
        return order


class ItemBatches:
    """Items of a generator, a `Sequence` or a dataset: tuples of inputs, targets and maybe weights."""

    by_steps = True
    samples = None
    batch_size = None

    def __init__(self, source: Any, steps: int | None, model: Any, shuffle: Any, class_weight: Any) -> None:
        self._source, self._model = source, model
        self._shuffle, self._class_weight = shuffle, class_weight
        self._sequence = isinstance(source, Sequence)
        self.steps = steps if steps is not None else len(source) if self._sequence else None
        self._dataset = isinstance(source, (Dataset, DatasetIterator))
        if self.steps is None and not self._dataset and not hasattr(source, "__len__"):
            raise ValueError(
                "`steps_per_epoch=None` is only valid for a generator based on the `keras.utils.Sequence` class. "
                "Please specify `steps_per_epoch` or use the `keras.utils.Sequence` class."
            )
        self._restarts = self._dataset and steps is None
        self._running: Any = None
        self._kept: list = []
        self._targets = True

    def inputs_only(self) -> None:
        """Leaves out targets and weights: for predictions."""
        self._targets = False

    def first(self) -> Batch:
        """The first batch, which `epoch` gives again."""
        self._running = self._running or self._start()
        self._kept.append(next(self._running))
        return self._kept[0]

    def _start(self) -> Iterator[Batch]:
        if self._dataset:
            items = dataset_items(self._source)
        elif self._sequence:
            items = _sequence_items(self._source, self._shuffle)
        else:
            items = iter(self._source)
        for item in items:
            yield self._model._batch_of(item, self._class_weight, self._targets)

    def epoch(self) -> Iterator[Batch]:
        """The batches of one pass."""
        if self._running is None or (self._restarts and not self._kept):
            self._running = self._start()
        done = 0
        while self.steps is None or done < self.steps:
            if self._kept:
                batch = self._kept.pop()
            else:
                try:
                    batch = next(self._running)
                except StopIteration:
                    break
            done += 1
            yield batch
        if self.steps is not None and done < self.steps:
            self._ran_out()
        elif self.steps is None:
            self.steps = done
        if self._sequence:
            self._source.on_epoch_end()

    def _ran_out(self) -> None:
        self._model.stop_training = True
        logging.warning(
            "Your dataset ran out of data; interrupting training. Make sure that your dataset can generate at least "
            f"`steps_per_epoch * epochs` batches (in this case, {self.steps} batches for an epoch). You may need to use "
            "the repeat() function when building your dataset."
        )


def _sequence_items(source: Sequence, shuffle: Any) -> Iterator:
    while True:
        order = np.arange(len(source))
        if shuffle:
            np.random.shuffle(order)
        for i in order:
            yield source[int(i)]


def dataset_items(source: Any) -> Iterator:
    """The elements of a dataset, or of an iterator over one, as arrays."""
    graph = state.get_session().graph
    with graph.as_default():
        if isinstance(source, Dataset):
            cache = graph.__dict__.setdefault("_keras_iterators", {})
            if id(source) not in cache:
                result = source.make_initializable_iterator()
                cache[id(source)] = (source, result, result.get_next())
            _, iterator, element = cache[id(source)]
            state.get_session().run(iterator.initializer)
        else:
            cache = graph.__dict__.setdefault("_keras_elements", {})
            if id(source) not in cache:
                cache[id(source)] = (source, source.get_next())
            element = cache[id(source)][1]
        session = state.get_session()
    while True:
        try:
            item = session.run(element)
        except OutOfRangeError:
            return
        yield item


def tensor_items(x: Any, y: Any, sample_weight: Any) -> Any:
    """Batches from tensors of the graph, or None when there is no tensor among them."""
    if not any(isinstance(t, Tensor) for t in nest.flatten(x)):
        return None
    parts = (x,) if y is None else (x, y) if sample_weight is None else (x, y, sample_weight)

    def values() -> Iterator:
        session = state.get_session()
        while True:
            try:
                item = session.run(parts)
            except OutOfRangeError:
                return
            yield item

    return values()


def is_items(source: Any) -> bool:
    """Whether data comes by batches, not as arrays."""
    if isinstance(source, (Sequence, Dataset, DatasetIterator)):
        return True
    return hasattr(source, "__next__") or (
        hasattr(source, "__iter__") and hasattr(source, "next") and not isinstance(source, np.ndarray)
    )


def standardized(data: Any, names: list[str], shapes: list, what: str, check_batch: bool = True) -> list:
    """Arrays in the order of `names`, each of the rank its shape has; ValueError when they do not fit."""
    if data is None:
        return [None] * len(names)
    if isinstance(data, dict):
        missing = [n for n in names if n not in data]
        if missing:
            raise ValueError(f'No data provided for "{missing[0]}". Need data for each key in: {names}')
        results = [data[n] for n in names]
    elif isinstance(data, (list, tuple)) and not (len(names) == 1 and len(data) and np.isscalar(data[0])):
        results = list(data)
        if len(names) == 1 and len(results) != 1 and not any(hasattr(a, "shape") for a in results):
            results = [np.asarray(data)]
    else:
        results = [data]
    if len(results) != len(names):
        raise ValueError(
            f"Error when checking model {what}: the list of Numpy arrays that you are passing to your model is not the "
            f"size the model expected. Expected to see {len(names)} array(s), for inputs {names} but instead got the "
            f"following list of {len(results)} arrays: {str(results)[:200]}..."
        )
    arrays = [_array(a) for a in results]
    for name, array, shape in zip(names, arrays, shapes, strict=True):
        _check_shape(name, array, shape, what)
    return arrays


def _array(value: Any) -> Any:
    result = value if isinstance(value, np.ndarray) else np.asarray(getattr(value, "values", value))
    return np.expand_dims(result, 1) if result.ndim == 1 else result


def _check_shape(name: str, array: Any, shape: Any, what: str) -> None:
    if shape is None or array is None:
        return
    if array.ndim != len(shape):
        raise ValueError(
            f"Error when checking {what}: expected {name} to have {len(shape)} dimensions, but got array with shape "
            f"{array.shape}"
        )
    for wanted, got in zip(shape[1:], array.shape[1:], strict=True):
        if wanted is not None and wanted != got:
            raise ValueError(
                f"Error when checking {what}: expected {name} to have shape {tuple(shape[1:])} but got array with "
                f"shape {array.shape[1:]}"
            )


def check_lengths(inputs: list, targets: list, weights: list) -> None:
    """ValueError when there are not as many examples in all arrays."""
    sizes = [{len(a) for a in arrays if a is not None} for arrays in (inputs, targets, weights)]
    for size, what in zip(sizes, ("input", "target"), strict=False):
        if len(size) > 1:
            raise ValueError(
                f"All {what} arrays (x) should have the same number of samples. Got array shapes: {sorted(size)}"
            )
    for size, what in ((sizes[1], "target"), (sizes[2], "sample_weight")):
        if sizes[0] and size and sizes[0] != size:
            raise ValueError(
                f"Input arrays should have the same number of samples as {what} arrays. Found {min(sizes[0])} input "
                f"samples and {min(size)} {what} samples."
            )


def class_weights(target: Any, class_weight: dict) -> np.ndarray:
    """The weight of each example, from those of the classes."""
    labels = (
        target.argmax(-1) if target.ndim > 1 and target.shape[-1] > 1 else np.reshape(target, len(target))
    )
    try:
        return np.array([class_weight[int(c)] for c in labels], state.floatx())
    except KeyError as e:
        raise ValueError(
            f"`class_weight` must contain all classes in the data. The classes {{{e}}} exist in the data but not in "
            "`class_weight`."
        ) from None


def split(item: Any) -> tuple[Any, Any, Any]:
    """The inputs, targets and weights of a batch."""
    if isinstance(item, tuple):
        if len(item) == 1:
            return item[0], None, None
        if len(item) == 2:
            return item[0], item[1], None
        if len(item) == 3:
            return item
        raise ValueError(
            "Output of generator should be a tuple `(x, y, sample_weight)` or `(x, y)`. Found: "
            f"{nest.map_structure(np.shape, item)!s}"
        )
    return item, None, None
