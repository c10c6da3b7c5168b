"""`tf.estimator.inputs`: input functions over arrays and data frames in memory."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.api.data.dataset import Dataset
from tensorfleet.base.dtypes import as_dtype
from tensorfleet.base.naming import find


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """A function that gives batches of arrays: `x` and `y` are arrays, or dictionaries of arrays, of one length.

    Batches go over the ends of epochs; the last may be smaller. `num_epochs=None` goes on for ever.
    """
    _need_bool(shuffle)
    if not isinstance(x, (dict, np.ndarray)):
        raise TypeError(f"x must be a dict or array; got {type(x).__name__}")
    for name, given in (("x", x), ("y", y)):
        if isinstance(given, dict) and not given:
            raise ValueError(
                f"{name} cannot be empty dict, use None instead."
                if name == "y"
                else "x cannot be an empty dict"
            )
    both = set(x) & set(y) if isinstance(x, dict) and isinstance(y, dict) else set()
    if both:
        raise ValueError(f"{len(both)} duplicate keys are found in both x and y: {sorted(both)}")

    def input_fn() -> Any:
        parts = [_arrays(given) for given in (x, y)]
        _need_one_length(parts)
        arrays = [*parts[0].values(), *parts[1].values()]
        tensors = _batches(arrays, batch_size, num_epochs, bool(shuffle))
        result, rest = [], iter(tensors)
        for given, part in zip((x, y), parts, strict=True):
            named = {key: next(rest) for key in part}
            result.append(named if isinstance(given, dict) else next(iter(named.values()), None))
        return result[0] if y is None else (result[0], result[1])

    return input_fn


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """A function that gives batches of a data frame's rows: a tensor for each column, and `y` (a series, or a frame)."""
    if importlib.util.find_spec("pandas") is None:
        raise TypeError("pandas_input_fn should not be called without pandas installed")
    _need_bool(shuffle)
    if not isinstance(target_column, str):
        raise TypeError("target_column must be a string type")
    columns = {name: _values(x[name]) for name in x.columns}
    if y is None:
        return numpy_input_fn(columns, None, batch_size, num_epochs, shuffle, queue_capacity, num_threads)
    if target_column in columns:
        raise ValueError(
            f"Cannot use name {target_column} for target column: DataFrame already has a column with that name: {x.columns}"
        )
    if not np.array_equal(x.index, y.index):
        raise ValueError(
            f"Index for x and y are mismatched.\nIndex for x: {x.index}\nIndex for y: {y.index}\n"
        )
    targets = {name: _values(y[name]) for name in y.columns} if hasattr(y, "columns") else _values(y)
    return numpy_input_fn(columns, targets, batch_size, num_epochs, shuffle, queue_capacity, num_threads)


def _need_bool(shuffle: Any) -> None:
    if not isinstance(shuffle, bool):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean (it is recommended to set it as True for training); "
            f"got {shuffle}"
        )


def _values(column: Any) -> np.ndarray:
    """A column as an array; text as bytes."""
    values = np.asarray(column)
    if values.dtype != object:
        return values
    return np.array([v.encode() if isinstance(v, str) else v for v in values], dtype=object)


def _arrays(given: Any) -> dict:
    if given is None:
        return {}
    return (
        {k: np.asarray(v) for k, v in given.items()} if isinstance(given, dict) else {"": np.asarray(given)}
    )


def _need_one_length(parts: list[dict]) -> None:
    lengths = {array.shape[0] for part in parts for array in part.values()}
    if len(lengths) > 1:
        shapes = [{key: array.shape for key, array in part.items()} for part in parts]
        raise ValueError(
            "Length of tensors in x and y is mismatched. All elements in x and y must have the same length.\n"
            f"Shapes in x: {shapes[0]}\nShapes in y: {shapes[1]}\n"
        )


def _batches(arrays: list, batch_size: int, epochs: int | None, shuffle: bool) -> list:
    """The next rows of each array. The graph holds row numbers only: the arrays stay in this process."""
    size = len(arrays[0])
    rows = Dataset.range(size)
    if shuffle:
        rows = rows.shuffle(max(size, 1))
    kinds = [as_dtype(array.dtype) for array in arrays]

    def of_rows(places: Any) -> list:
        return [array[places] for array in arrays]

    batches = rows.repeat(epochs).batch(batch_size)
    batches = batches.map(lambda places: tuple(find("py_func")(of_rows, [places], kinds)))
    tensors = list(batches.make_one_shot_iterator().get_next())
    for tensor, array in zip(tensors, arrays, strict=True):
        tensor.set_shape([None, *array.shape[1:]])
    return tensors
