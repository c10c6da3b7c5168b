"""`tf.data.experimental`: transformations for `Dataset.apply`, and a few more datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensorfleet.api.data import structure as structures
from tensorfleet.api.data.dataset import Dataset, _batch_length, _check_predicate, _inner, _int64, _stateful
from tensorfleet.api.data.functions import traced
from tensorfleet.api.data.seeds import dataset_seeds
from tensorfleet.api.data.structure import Leaf, Nested, map_leaves, pack_like
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, publish
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list, apply_op, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.ops.input.parsing import parse_example

AUTOTUNE = -1
publish(AUTOTUNE, "data.experimental.AUTOTUNE", "contrib.data.AUTOTUNE")
publish(-1, "data.experimental.INFINITE_CARDINALITY")
publish(-2, "data.experimental.UNKNOWN_CARDINALITY")
Transformation = Callable[[Dataset], Dataset]


@export("data.experimental.ignore_errors", "contrib.data.ignore_errors")
def ignore_errors() -> Transformation:
    """Leaves out the elements that fail."""
    return lambda dataset: dataset._transformed("IgnoreErrorsDataset", dataset._structure)


@export("data.experimental.unbatch", "contrib.data.unbatch")
def unbatch() -> Transformation:
    """The rows of elements, as elements."""
    return lambda dataset: dataset.unbatch()


@export("data.experimental.unique", "contrib.data.unique")
def unique() -> Transformation:
    """Each element once."""

    def transform(dataset: Dataset) -> Dataset:
        kinds = (dtypes.int32, dtypes.int64, dtypes.string)
        if not isinstance(dataset._structure, Leaf) or dataset._structure.dtype not in kinds:
            raise TypeError("`tf.data.experimental.unique()` only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` component.")  # fmt: skip
        return dataset._transformed("UniqueDataset", dataset._structure)

    return transform


@export("data.experimental.enumerate_dataset", "contrib.data.enumerate_dataset")
def enumerate_dataset(start: TensorLike = 0) -> Transformation:
    """Pairs of a number, counted from `start`, and an element."""
    return lambda dataset: dataset.enumerate(start)


@export("data.experimental.shuffle_and_repeat", "contrib.data.shuffle_and_repeat")
def shuffle_and_repeat(
    buffer_size: TensorLike, count: TensorLike = None, seed: int | None = None
) -> Transformation:
    """`shuffle` and then `repeat`."""

    def transform(dataset: Dataset) -> Dataset:
        size, times = _int64(buffer_size, "buffer_size"), _int64(-1 if count is None else count, "count")
        return dataset._transformed(
            "ShuffleAndRepeatDataset", dataset._structure, size, *dataset_seeds(seed), times
        )

    return transform


@export("data.experimental.map_and_batch", "contrib.data.map_and_batch")
def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: int | None = None,
    drop_remainder: TensorLike = False,
    num_parallel_calls: TensorLike = None,
) -> Transformation:
    """`map` and then `batch`."""
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError(
            "The `num_parallel_batches` and `num_parallel_calls` arguments are mutually exclusive."
        )
    # `num_parallel_batches` is the older argument, which counts whole batches.
    calls = num_parallel_calls if num_parallel_calls is not None else batch_size * (num_parallel_batches or 1)

    def transform(dataset: Dataset) -> Dataset:
        function = traced(map_func, "map_and_batch", dataset._structure)
        size, drop = (
            _int64(batch_size, "batch_size"),
            to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder"),
        )
        known = _batch_length(size, drop)
        structure = map_leaves(lambda leaf: leaf.batched(known), function.structure)
        given = size, _int64(calls, "num_parallel_calls"), drop
        return dataset._transformed_by("MapAndBatchDataset", structure, function, *given)

    return transform


publish(map_and_batch, "data.experimental.map_and_batch_with_legacy_function")


@export("data.experimental.parallel_interleave", "contrib.data.parallel_interleave")
def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: TensorLike,
    block_length: TensorLike = 1,
    sloppy: TensorLike = False,
    buffer_output_elements: TensorLike = None,
    prefetch_input_elements: TensorLike = None,
) -> Transformation:
    """`interleave`. The order is always that of `sloppy=False`."""
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, num_parallel_calls=cycle_length
    )


@export("data.experimental.scan", "contrib.data.scan")
def scan(initial_state: Nested, scan_func: Callable[..., Any]) -> Transformation:
    """New elements from `state, new = scan_func(state, element)`."""

    def transform(dataset: Dataset) -> Dataset:
        state = structures.converted(initial_state, "initial_state")
        function, _ = _stateful(scan_func, state, dataset._structure, "scan", with_output=True)
        return dataset._transformed(
            "ScanDataset",
            function.structure[1],
            structures.carried(state),
            function.captured,
            f=function.name,
        )

    return transform


@export("data.experimental.take_while", "contrib.data.take_while")
def take_while(predicate: Callable[..., Any]) -> Transformation:
    """The elements before the first for which `predicate` is not True."""

    def transform(dataset: Dataset) -> Dataset:
        function = traced(predicate, "take_while", dataset._structure)
        _check_predicate(function, predicate)
        return dataset._transformed(
            "TakeWhileDataset", dataset._structure, function.captured, predicate=function.name
        )

    return transform


@export("data.experimental.group_by_window", "contrib.data.group_by_window")
def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: TensorLike = None,
    window_size_func: Callable[[Tensor], TensorLike] | None = None,
) -> Transformation:
    """Groups of up to `window_size` elements with the same key, each turned into elements by `reduce_func`."""
    if (window_size is None) == (window_size_func is None):
        raise ValueError("Must pass either window_size or window_size_func, but not both.")
    size_of: Callable[[Tensor], TensorLike] = window_size_func or (
        lambda unused_key: _int64(window_size, "window_size")
    )

    def transform(dataset: Dataset) -> Dataset:
        key_leaf = Leaf(dtypes.int64, TensorShape([]))

        def key_of(*element: Any) -> Any:
            key = key_func(*element)
            is_number = isinstance(key, (int, np.integer, np.ndarray)) and not isinstance(key, bool)
            return to_tensor(key, dtypes.int64) if is_number else key

        key = traced(key_of, "group_by_window", dataset._structure)
        leaf = key.structure
        fits = isinstance(leaf, Leaf) and leaf.dtype == dtypes.int64 and leaf.shape.rank in (None, 0)
        if not fits:
            raise ValueError(f"`key_func` must return a single tf.int64 scalar tensor. Got {key.structure}.")
        size = traced(lambda k: to_tensor(size_of(k), dtypes.int64), "group_by_window", key_leaf)
        window = Leaf(dtypes.variant, TensorShape([]), dataset._structure)
        reduce = traced(lambda k, w: reduce_func(k, w), "group_by_window", key_leaf, window)
        return dataset._transformed(
            "GroupByWindowDataset",
            _inner(reduce, "reduce_func"),
            key.captured,
            reduce.captured,
            size.captured,
            key_func=key.name,
            reduce_func=reduce.name,
            window_size_func=size.name,
        )

    return transform


@export("data.experimental.bucket_by_sequence_length", "contrib.data.bucket_by_sequence_length")
def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Nested = None,
    padding_values: Nested = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Padded batches of elements of similar length: those between two neighbouring boundaries together."""
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError("len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1")
    edges = np.array(bucket_boundaries, np.int32)
    sizes = np.array(bucket_batch_sizes, np.int64)

    def bucket(*element: Any) -> Tensor:
        length = to_tensor(element_length_func(*element), dtypes.int32)
        above = apply("Cast", apply("LessEqual", constant(edges), length), DstT=dtypes.int64)
        return (
            apply("Sum", above, constant(np.array([0], np.int32)))
            if len(edges)
            else constant(0, dtypes.int64)
        )

    def size_of(key: Tensor) -> Tensor:
        return apply("GatherV2", constant(sizes), key, constant(0))

    def batched(key: Tensor, group: Dataset) -> Dataset:
        size = size_of(key)
        if no_padding:
            return group.batch(size, drop_remainder)
        shapes = padded_shapes if padded_shapes is not None else structures.shapes_of(group._structure)
        if pad_to_bucket_boundary:
            text = "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."
            check = apply_op("Assert", apply("Less", key, np.int64(len(edges))), [text])
            with check.graph.control_dependencies([check]):
                limits = constant(np.array([*(edges - 1), -1], np.int64))
                limit = apply("GatherV2", limits, key, constant(0))
            shapes = pack_like(group._structure, [_limited(s, limit) for s in _flat_shapes(group, shapes)])
        return group.padded_batch(size, shapes, padding_values, drop_remainder)

    return lambda dataset: dataset.apply(group_by_window(bucket, batched, window_size_func=size_of))


def _flat_shapes(group: Dataset, shapes: Nested) -> list[Any]:
    return structures.match(group._structure, shapes, structures.is_shape, "padded_shapes")


def _limited(shape: ShapeLike, limit: Tensor) -> Any:
    dims = TensorShape(shape).as_list()
    if None not in dims:
        return shape
    return apply("Pack", [limit if d is None else constant(d, dtypes.int64) for d in dims])


@export("data.experimental.parse_example_dataset")
def parse_example_dataset(features: Mapping[str, Any], num_parallel_calls: TensorLike = 1) -> Transformation:
    """Takes batches of serialized Examples apart."""
    if features is None:
        raise ValueError("Missing: features was None.")
    return lambda dataset: dataset.map(lambda x: parse_example(x, features), num_parallel_calls)


@export("data.experimental.Counter", "contrib.data.Counter")
def Counter(start: TensorLike = 0, step: Any = 1, dtype: DTypeLike = dtypes.int64) -> Dataset:
    """`start`, `start + step`, ... for ever."""
    # A range has an end; at one number per nanosecond it takes 292 years to get there.
    far = np.int64(2**63 - 1 if step > 0 else -(2**63))
    numbers = Dataset.range(start, far, step)
    kind = dtypes.as_dtype(dtype)
    return numbers if kind == dtypes.int64 else numbers.map(lambda n: apply("Cast", n, DstT=kind))


@export("data.experimental.get_single_element", "contrib.data.get_single_element")
def get_single_element(dataset: Dataset) -> Any:
    """The only element of a dataset, as tensors."""
    if not isinstance(dataset, Dataset):
        raise TypeError("`dataset` must be a `tf.data.Dataset` object.")
    declared = structures.declared(dataset._structure)
    outputs = apply_list("DatasetToSingleElement", dataset._variant_tensor, **declared)
    return structures.unpacked(dataset._structure, outputs)


@export("data.experimental.choose_from_datasets", "contrib.data.choose_from_datasets")
def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """Elements of several datasets, in the order in which a dataset of numbers names them."""
    if not (isinstance(choice_dataset._structure, Leaf) and choice_dataset._structure.dtype == dtypes.int64):
        raise TypeError("`choice_dataset` must be a dataset of scalar `tf.int64` tensors.")
    first = datasets[0]
    for other in datasets[1:]:
        if (first.output_types, first.output_classes) != (other.output_types, other.output_classes):
            raise TypeError("All datasets must have the same type and class.")
    return Dataset._make(
        "DirectedInterleaveDataset",
        first._structure,
        choice_dataset._variant_tensor,
        [d._variant_tensor for d in datasets],
        sources=(choice_dataset, *datasets),
    )


@export("data.experimental.sample_from_datasets", "contrib.data.sample_from_datasets")
def sample_from_datasets(
    datasets: Sequence[Dataset], weights: Sequence[float] | Array | None = None, seed: int | None = None
) -> Dataset:
    """Elements of several datasets, each taken from one chosen at random with these `weights`."""
    chances = (
        np.full(len(datasets), 1 / len(datasets)) if weights is None else np.asarray(weights, np.float64)
    )
    if len(chances) != len(datasets):
        raise ValueError("`weights` must be a vector of length `len(datasets)`.")
    # A weight of zero gets a logarithm that is finite, and a chance of nearly nothing.
    logits = np.log(np.maximum(chances, 1e-300)).astype(np.float32)[None]

    def choose(words: Tensor) -> Tensor:
        drawn = apply("StatelessMultinomial", constant(logits), constant(1), words, output_dtype=dtypes.int64)
        return apply("Reshape", drawn, constant(np.zeros(0, np.int32)))

    return choose_from_datasets(datasets, RandomDataset(seed).batch(2).map(choose))


@export("data.experimental.prefetch_to_device", "contrib.data.prefetch_to_device")
def prefetch_to_device(device: TensorLike, buffer_size: TensorLike = None) -> Transformation:
    """`prefetch`; the elements move to the device when it uses them."""
    return lambda dataset: dataset.prefetch(buffer_size)


@export("data.experimental.copy_to_device", "contrib.data.copy_to_device")
def copy_to_device(target_device: TensorLike, source_device: TensorLike = "/cpu:0") -> Transformation:
    """The dataset itself; the elements move to the device when it uses them."""
    return lambda dataset: dataset


@export("contrib.data.batch_and_drop_remainder")
def batch_and_drop_remainder(batch_size: TensorLike) -> Transformation:
    """Batches that all have the same size."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


class RandomDataset(Dataset):
    """Random int64 numbers for ever; the same ones for the same seed."""

    def __init__(self, seed: int | None = None) -> None:
        self._set("RandomDataset", Leaf(dtypes.int64, TensorShape([])), *dataset_seeds(seed))


publish(RandomDataset, "data.experimental.RandomDataset", "contrib.data.RandomDataset")


@export("data.experimental.TFRecordWriter")
class TFRecordWriter:
    """Writes a dataset of strings to a TFRecord file: `write(dataset)` is an operation that does it."""

    def __init__(self, filename: TensorLike, compression_type: TensorLike = None) -> None:
        self._filename = to_tensor(filename, dtypes.string, name="filename")
        packing = "" if compression_type is None else compression_type
        self._compression = to_tensor(packing, dtypes.string, name="compression_type")

    def write(self, dataset: Dataset) -> Operation:
        """The operation that writes all elements."""
        if not isinstance(dataset, Dataset):
            raise TypeError("`dataset` must be a `tf.data.Dataset` object.")
        leaf = dataset._structure
        if not isinstance(leaf, Leaf) or leaf.dtype != dtypes.string or leaf.shape.rank not in (None, 0):
            raise TypeError(
                "`dataset` must produce scalar `DT_STRING` tensors whereas it produces shape "
                f"{dataset.output_shapes} and types {dataset.output_types}"
            )
        return apply_op("DatasetToTFRecord", dataset._variant_tensor, self._filename, self._compression)
