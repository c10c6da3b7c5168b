"""`tf.contrib.learn.io.generator_input_fn`: an input function over what a Python generator gives."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from types import FunctionType, GeneratorType
from typing import Any

import numpy as np

from tensorfleet.api.data.dataset import Dataset
from tensorfleet.base.dtypes import as_dtype


def generator_input_fn(
    x: Callable[[], Iterator[dict]],
    target_key: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    pad_value: Any = None,
) -> Callable[[], Any]:
    """A function that gives batches of the dicts that `x()` yields, one for each example; `x` is called for every epoch.

    `target_key` names what the labels are, or several such. With `pad_value`, the last dimension of the arrays may differ:
    a batch has that of its longest, filled up with the value.
    """
    first = _first_of(x)
    targets = _target_keys(target_key, sorted(first))

    def input_fn() -> Any:
        rows = _rows(x, first, pad_value is not None)
        if shuffle:
            rows = rows.shuffle(queue_capacity)
        rows = rows.repeat(num_epochs)
        if pad_value is None:
            rows = rows.batch(batch_size)
        else:
            rows = rows.padded_batch(batch_size, rows.output_shapes, _padding(first, pad_value))
        features = rows.make_one_shot_iterator().get_next()
        if not targets:
            return features
        labels = {key: features.pop(key) for key in targets}
        return features, labels if len(targets) > 1 else labels[targets[0]]

    return input_fn


def _first_of(x: Any) -> dict[str, np.ndarray]:
    """The first example, which tells the names, types and shapes of all."""
    if not isinstance(x, FunctionType):
        raise TypeError(f"x must be generator function; got {type(x).__name__}")
    generator = x()
    if not isinstance(generator, GeneratorType):
        raise TypeError(f"x() must be generator; got {type(generator).__name__}")
    first = next(generator)
    if not isinstance(first, dict):
        raise TypeError(f"x() must yield dict; got {type(first).__name__}")
    return {key: np.asarray(first[key]) for key in sorted(first)}


def _target_keys(target_key: Any, keys: list[str]) -> list[str]:
    if target_key is None:
        return []
    if not isinstance(target_key, Container):
        raise TypeError(f"target_key must be str or Container of str; got {type(target_key).__name__}")
    result = [target_key] if isinstance(target_key, str) else list(target_key)  # type: ignore[call-overload]
    for key in result:
        if not isinstance(key, str):
            raise TypeError(f"target_key must be str or Container of str; got {type(key).__name__}")
        if key not in keys:
            raise KeyError(f"target_key not in yielded dict. Expected {keys} keys; got {key}")
    return result


def _rows(x: Callable, first: dict[str, np.ndarray], padded: bool) -> Dataset:
    """One epoch."""

    def examples() -> Iterator[dict]:
        for example in x():
            if not first.keys() <= example.keys():
                raise KeyError(
                    f"key mismatch between dicts emitted by GenFun Expected {list(first)} keys; got {list(example)}"
                )
            yield {key: example[key] for key in first}

    types = {key: as_dtype(array.dtype) for key, array in first.items()}
    shapes = {
        key: [*array.shape[:-1], None] if padded and array.ndim else list(array.shape)
        for key, array in first.items()
    }
    return Dataset.from_generator(examples, types, shapes)


def _padding(first: dict[str, np.ndarray], value: Any) -> dict[str, Any]:
    return {
        key: value if array.dtype.kind in "OSU" else array.dtype.type(value) for key, array in first.items()
    }
