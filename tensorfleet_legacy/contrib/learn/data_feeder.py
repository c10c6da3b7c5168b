"""Arrays, tables of pandas and iterators in batches, as `tf.contrib.learn` fed them to placeholders."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly

_SEED = 42
_NUMBERS = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
_NUMBERS |= {"float16", "float32", "float64", "bool"}

# -- tables ------------------------------------------------------------------------------------------


def _is_table(data: Any) -> bool:
    pandas = sys.modules.get("pandas")  # whoever has a table has imported it
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _need_numbers(table: Any, what: str, quote: str) -> None:
    bad = [column for column in table if table[column].dtype.name not in _NUMBERS]
    if bad:
        result = ", ".join(f"'{c}' type={quote}{table[c].dtype.name}{quote}" for c in bad)
        raise ValueError(f"Data types for extracting {what} must be int, float, or bool. Found: {result}")


def extract_pandas_data(data: Any) -> Any:
    """The numbers of a table as an array of floats; anything else as it is."""
    if not _is_table(data):
        return data
    _need_numbers(data, "pandas data", "'")
    return data.values.astype("float")


def extract_pandas_matrix(data: Any) -> Any:
    """The values of a table as an array; anything else as it is."""
    return data.values if _is_table(data) else data


def extract_pandas_labels(labels: Any) -> Any:
    """The one column of a table of labels as an array; anything else as it is."""
    if not _is_table(labels):
        return labels
    if len(labels.columns) > 1:
        raise ValueError("Only one column for labels is allowed.")
    _need_numbers(labels, "labels", "")
    return labels.values


def _rows(data: Any, places: Any) -> Any:
    return data.iloc[places] if hasattr(data, "iloc") else data[places]


# -- what is fed -------------------------------------------------------------------------------------


def _each(function: Callable, data: Any, *others: Any) -> Any:
    """A function of an array, or of each in a dictionary, with what others have under the same name."""
    if data is None:
        return None
    if not isinstance(data, dict):
        return function(data, *others)
    return {k: function(v, *((o or {}).get(k) for o in others)) for k, v in data.items()}


def _kind(dtype: Any) -> Any:
    if dtypes.as_dtype(dtype) == dtypes.float64:
        logging.warning("float64 is not supported by many models, consider casting to float32.")
    return dtype


def _fed_shape(size: int, shape: Any) -> list:
    return [size, *(shape[1:] if len(shape) > 1 else [1])]


def _label_shape(size: int, shape: Any, classes: int | None) -> list:
    rest = list(shape[1:])
    rest = rest[1:] if rest and rest[0] == 1 else rest
    return [size, *rest, *([classes] if classes is not None and classes > 1 else [])]


def _put(rows: np.ndarray, i: int, value: Any, classes: int | None) -> None:
    """One example's label, or ones at the places of its classes."""
    if classes is None or classes <= 1:
        rows[i] = value[0] if isinstance(value, list) and rows.ndim == 1 else value
    elif rows.ndim == 2:
        rows[i, int(value)] = 1.0
    else:
        for place, number in enumerate(value):
            rows[i, place, number] = 1.0


def _by_name(placeholders: Any, values: Any) -> dict[str, Any]:
    """Values by the names of their placeholders."""
    if isinstance(placeholders, dict):
        return {placeholders[k].name: values[k] for k in placeholders}
    return {placeholders.name: values}


class DataFeeder:
    """Batches of arrays, or of dictionaries of them, for placeholders that `input_builder` makes.

    With `n_classes` labels become a column for each class. The order is random with `shuffle`; after `epochs` times
    through all examples the feeding function raises StopIteration.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        n_classes: Any,
        batch_size: int | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        epochs: int | None = None,
    ) -> None:
        y = np.array(y) if isinstance(y, list) else y
        self._x = _each(lambda a: check_array(a, a.dtype), x)
        self._y = _each(lambda a: check_array(a, a.dtype), y)
        if n_classes is not None and y is not None and not isinstance(y, dict):
            self._y = check_array(y, np.int64 if n_classes > 1 else np.float32)
        self._describe(_each(np.shape, self._x), _each(np.shape, self._y), n_classes, batch_size)
        self._input_dtype = _each(lambda a: _kind(a.dtype), self._x)
        self._output_dtype: Any = np.float32
        if y is not None:
            self._output_dtype = _each(lambda a: _kind(a.dtype), self._y)
        if isinstance(y, dict):
            self._output_dtype.update({k: np.float32 for k in n_classes or () if k in y})
        self.max_epochs = epochs
        self._shuffle = shuffle
        self.random_state = np.random.RandomState(_SEED) if random_state is None else random_state
        first = next(iter(self._x.values())) if isinstance(self._x, dict) else self._x
        self._length = int(first.shape[0])
        self.indices = self._order()
        self.offset = self.epoch = 0

    _epoch_placeholder: Any = None
    _input_placeholder: Any = None
    _output_placeholder: Any = None

    x = readonly("_x", "The features.")
    y = readonly("_y", "The labels.")
    shuffle = readonly("_shuffle", "Whether the order is random.")
    input_dtype = readonly("_input_dtype", "The types of the features.")
    output_dtype = readonly("_output_dtype", "The types of the labels.")
    batch_size = readonly("_batch_size", "How many examples are fed at a time.")

    def _describe(self, x: Any, y: Any, n_classes: Any, batch_size: int | None) -> None:
        """The shapes of what is fed."""
        if batch_size is None:
            batch_size = (next(iter(x.values())) if isinstance(x, dict) else x)[0]
        elif batch_size <= 0:
            raise ValueError(f"Invalid batch_size {batch_size}.")
        size: int = batch_size
        self._batch_size, self.n_classes = size, n_classes
        self.input_shape = _each(lambda shape: _fed_shape(size, shape), x)
        self.output_shape = _each(lambda shape, n: _label_shape(size, shape, n), y, n_classes)

    def _order(self) -> np.ndarray:
        return self.random_state.permutation(self._length) if self._shuffle else np.arange(self._length)

    def make_epoch_variable(self) -> Any:
        """A placeholder for the number of times that all examples were fed."""
        self._epoch_placeholder = find("placeholder")(dtypes.int32, [1], name="epoch")
        return self._epoch_placeholder

    def input_builder(self) -> tuple[Any, Any]:
        """Placeholders for the features and the labels."""

        def made(shape: Any, kind: Any, name: str) -> Any:
            if isinstance(shape, dict):
                return {k: made(shape[k], kind[k], f"{name}_{k}") for k in shape}
            if shape is None:
                return None
            return find("placeholder")(dtypes.as_dtype(kind), [None, *shape[1:]], name=name)

        self._input_placeholder = made(self.input_shape, self._input_dtype, "input")
        self._output_placeholder = made(self.output_shape, self._output_dtype, "output")
        return self._input_placeholder, self._output_placeholder

    def set_placeholders(self, input_placeholder: Any, output_placeholder: Any) -> None:
        """Feeds these placeholders."""
        self._input_placeholder = input_placeholder
        self._output_placeholder = output_placeholder

    def get_feed_params(self) -> dict[str, int]:
        """Where the feeding is."""
        return {"epoch": self.epoch, "offset": self.offset, "batch_size": self._batch_size}

    def get_feed_dict_fn(self) -> Callable[[], dict]:
        """A function that gives what is fed next."""
        return self._next

    def _next(self) -> dict:
        if self.max_epochs is not None and self.epoch + 1 > self.max_epochs:
            raise StopIteration
        feed: dict[str, Any] = {}
        if self._epoch_placeholder is not None:
            feed[self._epoch_placeholder.name] = [self.epoch]
        chosen = self.indices[self.offset : self.offset + self._batch_size]
        feed.update(_by_name(self._input_placeholder, _each(lambda a: _examples(a, chosen), self._x)))
        self.offset += self._batch_size
        if self.offset >= self._length:
            self.indices = self._order()
            self.offset = 0
            self.epoch += 1
        if self._output_placeholder is None:
            return feed
        result = _each(
            lambda a, shape, kind, n: _labels(a, chosen, shape, kind, n),
            self._y,
            self.output_shape,
            self._output_dtype,
            self.n_classes,
        )
        return {**feed, **_by_name(self._output_placeholder, result)}


def _examples(data: Any, chosen: np.ndarray) -> Any:
    result = _rows(data, chosen)
    return np.array(result).reshape(len(chosen), 1) if len(data.shape) == 1 else result


def _labels(data: Any, chosen: np.ndarray, shape: list, kind: Any, classes: int | None) -> np.ndarray:
    result = np.zeros([len(chosen), *shape[1:]], kind)
    for i, place in enumerate(chosen):
        _put(result, i, _rows(data, place), classes)
    return result


class StreamingDataFeeder(DataFeeder):
    """Batches of what iterators give, example by example, until they end."""

    def __init__(self, x: Any, y: Any, n_classes: Any, batch_size: int | None) -> None:
        first, self._x = _peeked(x)
        label, self._y = (None, None) if y is None else _peeked(y)
        shape = lambda a: [1, *np.shape(a[0] if isinstance(a, list) else a)]  # noqa: E731
        self._describe(_each(shape, first), _each(shape, label), n_classes, batch_size)
        self._input_dtype = _each(lambda a: _kind(np.asarray(a).dtype), first)
        self._output_dtype = _each(lambda a: np.asarray(a).dtype, label)
        if n_classes is not None and not isinstance(label, dict) and n_classes > 0:
            self._output_dtype = np.float32
        self.stopped = False

    def get_feed_params(self) -> dict[str, int]:
        """How many examples are fed at a time."""
        return {"batch_size": self._batch_size}

    def get_feed_dict_fn(self) -> Callable[[], dict]:
        """A function that gives what is fed next."""
        self.stopped = False
        return self._next

    def _next(self) -> dict:
        if self.stopped:
            raise StopIteration
        examples = list(itertools.islice(self._x, self._batch_size))
        if not examples:
            self.stopped = True
            raise StopIteration
        self.stopped = len(examples) < self._batch_size
        feed = _by_name(self._input_placeholder, _filled(examples, self.input_shape, self._input_dtype, None))
        if self._y is None:
            return feed
        labels = list(itertools.islice(self._y, len(examples)))
        result = _filled(labels, self.output_shape, self._output_dtype, self.n_classes)
        return {**feed, **_by_name(self._output_placeholder, result)}


def _peeked(values: Iterator) -> tuple[Any, Iterator]:
    first = next(values)
    return first, itertools.chain([first], values)


def _filled(examples: list, shape: Any, kind: Any, classes: Any) -> Any:
    """Examples as the rows of arrays."""

    def one(shape: list, kind: Any, classes: Any, key: str | None = None) -> np.ndarray:
        result = np.zeros([len(examples), *shape[1:]], kind)
        for i, example in enumerate(examples):
            _put(result, i, example if key is None else example[key], classes)
        return result

    if not isinstance(shape, dict):
        return one(shape, kind, classes)
    return {k: one(shape[k], kind[k], (classes or {}).get(k), k) for k in shape}


# -- which of them -----------------------------------------------------------------------------------


def _is_iterator(x: Any) -> bool:
    return hasattr(x, "next") or hasattr(x, "__next__")


def setup_train_data_feeder(
    x: Any,
    y: Any,
    n_classes: Any,
    batch_size: int | None = None,
    shuffle: bool = True,
    epochs: int | None = None,
) -> DataFeeder:
    """A feeder of arrays, tables or iterators."""
    x, y = extract_pandas_data(x), extract_pandas_labels(y)
    if not _is_iterator(x):
        return DataFeeder(x, y, n_classes, batch_size, shuffle=shuffle, epochs=epochs)
    if y is not None and not _is_iterator(y):
        raise ValueError("Both x and y should be iterators for streaming learning to work.")
    return StreamingDataFeeder(x, y, n_classes, batch_size)


def setup_predict_data_feeder(x: Any, batch_size: int | None = None) -> Any:
    """Features in batches, for predictions."""
    x = extract_pandas_data(x)
    if batch_size is not None and batch_size <= 0:
        raise ValueError(f"Invalid batch_size {batch_size}.")
    if _is_iterator(x):
        return _batches(x, batch_size)
    x = np.reshape(x, (-1, 1)) if len(x.shape) == 1 else x
    size = len(x) if batch_size is None else batch_size
    return [x[i : i + size] for i in range(0, len(x), size)]


def _batches(x: Iterator, size: int | None) -> Iterator[Any]:
    while rows := list(itertools.islice(x, size)):
        if isinstance(rows[0], dict):
            yield {k: np.atleast_2d([row[k] for row in rows]) for k in rows[0]}
        else:
            yield np.atleast_2d(rows)


def setup_processor_data_feeder(x: Any) -> Any:
    """The values of a table as an array; anything else as it is."""
    return extract_pandas_matrix(x)


def check_array(array: Any, dtype: Any) -> Any:
    """An array or a list as an array of a type; anything else as it is."""
    return np.asarray(array, dtype) if isinstance(array, (np.ndarray, list)) else array
