"""`tf.contrib.data`: what it has besides `tf.data.experimental`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorfleet.base import nest
from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape

Transformation = Callable[[Any], Any]


def padded_batch_and_drop_remainder(
    batch_size: Any, padded_shapes: Any, padding_values: Any = None
) -> Transformation:
    """Padded batches that all have the same size."""
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )


def sloppy_interleave(map_func: Callable, cycle_length: Any, block_length: Any = 1) -> Transformation:
    """The elements of several datasets in turn, from those that are ready."""
    return find("data.experimental.parallel_interleave")(map_func, cycle_length, block_length, sloppy=True)


def reduce_dataset(dataset: Any, reducer: Any) -> Any:
    """The result of a `Reducer` over all elements."""
    group = find("data.experimental.group_by_reducer")(lambda *_: np.int64(0), reducer)
    return find("data.experimental.get_single_element")(dataset.apply(group))


def sliding_window_batch(
    window_size: Any, stride: Any = None, window_shift: Any = None, window_stride: Any = 1
) -> Transformation:
    """Batches of neighbours: each begins `window_shift` elements after the one before, and all are full."""
    given = [shift for shift in (window_shift, stride) if shift is not None]  # `stride` is the older name
    if len(given) == 2:
        raise ValueError("Cannot specify both `stride` and `window_shift`")
    shift = given[0] if given else 1

    def batched(*windows: Any) -> Any:
        element = windows if len(windows) > 1 else windows[0]
        parts = nest.map_structure(lambda window: window.batch(window_size), element)
        return find("data.Dataset").zip(parts) if nest.is_nested(parts) else parts

    return lambda dataset: dataset.window(window_size, shift, window_stride, True).flat_map(batched)


def assert_element_shape(expected_shapes: Any) -> Transformation:
    """The same elements, which are known to have shapes; an error when one has another."""

    def checked(*elements: Any) -> Any:
        element = elements if len(elements) > 1 else elements[0]
        tensors, wanted = nest.flatten(element), list(_shapes_for(element, expected_shapes))
        items = [_with(shape, tensor) for shape, tensor in zip(wanted, tensors, strict=True)]
        return nest.pack_sequence_as(element, items)

    return lambda dataset: dataset.map(checked)


def _shapes_for(element: Any, shapes: Any) -> Iterator[Any]:
    """The shapes of the components of an element; lists are shapes here, and no structure."""
    if isinstance(element, dict):
        for key in sorted(element):
            yield from _shapes_for(element[key], shapes[key])
    elif isinstance(element, tuple):
        if not isinstance(shapes, tuple) or len(shapes) != len(element):
            raise ValueError(f"The shapes {shapes} do not have the structure of the elements {element}.")
        for part, shape in zip(element, shapes, strict=True):
            yield from _shapes_for(part, shape)
    else:
        yield shapes


def _with(expected: Any, tensor: Any) -> Any:
    shape = TensorShape(expected)
    if shape.is_fully_defined():
        return find("contrib.framework.with_shape")(shape, tensor)
    if shape.rank is None:
        return tensor
    tensor.shape.assert_is_compatible_with(shape)
    actual = find("shape")(tensor)
    known = [(i, size) for i, size in enumerate(shape.as_list()) if size is not None]
    checks = [find("assert_rank")(tensor, shape.rank)]
    with find("control_dependencies")(checks):
        checks += [find("assert_equal")(actual[i], size) for i, size in known]
    with find("control_dependencies")(checks):
        result = find("identity")(tensor)
    result.set_shape(shape)
    return result


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: dict,
    reader: Any = find("data.TFRecordDataset"),  # noqa: B008
    reader_args: Any = None,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    capacity: int = 10000,
) -> dict:
    """The next batch of features of the `tf.Example`s in files."""
    dataset = find("data.experimental.make_batched_features_dataset")(
        file_pattern,
        batch_size,
        features,
        reader=reader,
        reader_args=reader_args,
        shuffle=randomize_input,
        num_epochs=num_epochs,
        shuffle_buffer_size=capacity,
    )
    return dataset.make_one_shot_iterator().get_next()
