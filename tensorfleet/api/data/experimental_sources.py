"""More of `tf.data.experimental`: sizes, variants, grouping with a state, resampling, rows of a database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.api.data.dataset import Dataset, VariantDataset, _int64
from tensorfleet.api.data.experimental import Transformation, group_by_window, scan
from tensorfleet.api.data.specs import leaves_of
from tensorfleet.api.data.structure import Leaf, Nested
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import Array, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.random.ops import get_seed

INFINITE, UNKNOWN = -1, -2
#: The places, values, largest sizes and number of the rows of a sparse tensor that is being put together.
_Rows: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]


# -- how many elements -------------------------------------------------------------------------------


@export("data.experimental.cardinality")
def cardinality(dataset: Dataset) -> Tensor:
    """How many elements a dataset has: -1 when it never ends, -2 when that is not known without running it."""
    return constant(np.int64(_count(dataset._variant_tensor.op)), name="DatasetCardinality")


def _number(op: Operation, position: int) -> int | None:
    value = constant_value(op.inputs[position])
    return None if value is None else int(value)


def _count(op: Operation) -> int:
    known = _COUNTS.get(op.type)
    return UNKNOWN if known is None else known(op)


def _of_input(op: Operation) -> int:
    return _count(op.inputs[0].op)


def _of_slices(op: Operation) -> int:
    first = op.inputs[0].shape
    size = first.as_list()[0] if first.rank else None
    return UNKNOWN if size is None else size


def _of_range(op: Operation) -> int:
    numbers = [_number(op, i) for i in range(3)]
    if any(n is None for n in numbers):
        return UNKNOWN
    return len(range(*[n for n in numbers if n is not None]))


def _repeated(op: Operation) -> int:
    size, times = _of_input(op), _number(op, 1)
    if times is None:
        return UNKNOWN
    if times == 0 or size == 0:
        return 0
    if times < 0:
        return INFINITE
    return size * times if size >= 0 else size


def _taken(op: Operation) -> int:
    size, wanted = _of_input(op), _number(op, 1)
    if wanted is None or size == UNKNOWN:
        return UNKNOWN
    if wanted < 0 or size == INFINITE:
        return size if wanted < 0 else wanted
    return min(size, wanted)


def _skipped(op: Operation) -> int:
    size, gone = _of_input(op), _number(op, 1)
    if gone is None:
        return UNKNOWN
    if gone < 0:
        return 0
    return max(size - gone, 0) if size >= 0 else size


def _in_batches(op: Operation) -> int:
    size, batch = _of_input(op), _number(op, 1)
    drop = constant_value(op.inputs[2] if op.type == "BatchDatasetV2" else op.inputs[-1])
    if size < 0 or batch is None or drop is None:
        return size if size < 0 else UNKNOWN
    return size // batch if drop else -(-size // batch)


def _sharded(op: Operation) -> int:
    size, shards, index = _of_input(op), _number(op, 1), _number(op, 2)
    if size < 0 or shards is None or index is None:
        return size if size < 0 else UNKNOWN
    return len(range(index, size, shards))


def _zipped(op: Operation) -> int:
    sizes = [_count(t.op) for t in op.inputs]
    if UNKNOWN in sizes:
        return UNKNOWN
    return min((s for s in sizes if s >= 0), default=INFINITE)


def _one_behind_the_other(op: Operation) -> int:
    sizes = [_count(t.op) for t in op.inputs[:2]]
    if INFINITE in sizes or UNKNOWN in sizes:
        return INFINITE if INFINITE in sizes else UNKNOWN
    return sum(sizes)


_COUNTS: dict[str, Callable[[Operation], int]] = {
    "TensorDataset": lambda op: 1,
    "TensorSliceDataset": _of_slices,
    "RangeDataset": _of_range,
    "RepeatDataset": _repeated,
    "TakeDataset": _taken,
    "SkipDataset": _skipped,
    "BatchDatasetV2": _in_batches,
    "PaddedBatchDatasetV2": _in_batches,
    "ShardDataset": _sharded,
    "ZipDataset": _zipped,
    "ConcatenateDataset": _one_behind_the_other,
    **dict.fromkeys(["ShuffleDataset", "CacheDataset", "PrefetchDataset", "ScanDataset"], _of_input),
}


# -- descriptions of elements -------------------------------------------------------------------------------


@export("data.experimental.get_structure")
def get_structure(dataset_or_iterator: object) -> Any:
    """The specs of an element's components."""
    if not hasattr(dataset_or_iterator, "element_spec"):
        raise TypeError(
            f"`dataset_or_iterator` must be a Dataset or Iterator, but got {type(dataset_or_iterator)}."
        )
    return dataset_or_iterator.element_spec


@export("data.experimental.to_variant")
def to_variant(dataset: Dataset) -> Tensor:
    """The tensor that stands for a dataset."""
    variant: Tensor = dataset._variant_tensor
    return variant


@export("data.experimental.from_variant")
def from_variant(variant: Tensor, structure: Nested) -> Dataset:
    """The dataset that a tensor stands for, whose elements have these specs."""
    return VariantDataset(variant, leaves_of(structure))


# -- groups ------------------------------------------------------------------------------------------


@export("data.experimental.Reducer", "contrib.data.Reducer")
class Reducer:
    """How `group_by_reducer` begins with a key, takes in an element, and ends."""

    def __init__(
        self,
        init_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        finalize_func: Callable[..., Any],
    ) -> None:
        self._init_func, self._reduce_func, self._finalize_func = init_func, reduce_func, finalize_func

    init_func = property(lambda self: self._init_func, doc="The state at the beginning, of a key.")
    reduce_func = property(lambda self: self._reduce_func, doc="The next state, of a state and an element.")
    finalize_func = property(lambda self: self._finalize_func, doc="The new element, of the last state.")


@export("data.experimental.group_by_reducer", "contrib.data.group_by_reducer")
def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """One element per key: the result of a reducer for all elements with that key."""

    def reduced(key: Tensor, group: Dataset) -> Dataset:
        last = group.reduce(reducer.init_func(key), reducer.reduce_func)
        return Dataset.from_tensors(reducer.finalize_func(*_spread(last)))

    return group_by_window(key_func, reduced, window_size=2**63 - 1)


def _spread(value: Nested) -> tuple[Any, ...]:
    """The arguments that a function of a value gets: the items of a tuple, or the value."""
    return value if isinstance(value, tuple) and not hasattr(value, "_fields") else (value,)


@export("data.experimental.dense_to_sparse_batch", "contrib.data.dense_to_sparse_batch")
def dense_to_sparse_batch(batch_size: TensorLike, row_shape: ShapeLike) -> Transformation:
    """Batches of tensors of different sizes, each a `SparseTensor` with rows of `row_shape`."""
    shape = as_shape(row_shape)
    rank = shape.rank
    if rank is None:
        raise ValueError("row_shape must have a known rank.")
    limit = np.array([-1 if d is None else d for d in shape.as_list()], np.int64)

    def add(state: _Rows, x: Tensor) -> _Rows:
        places, values, sizes, count = state
        x = apply(
            "PlaceholderWithDefault", apply("FleetCheckRow", x, limit), shape=TensorShape([None] * rank)
        )
        size = apply("Shape", x, out_type=dtypes.int64)
        new = apply("Where", _there(x))
        row = apply("Fill", apply("Pack", [apply("Size", x), 1]), count)
        new = apply("ConcatV2", [row, new], 1)
        return (
            apply("ConcatV2", [places, new], 0),
            apply("ConcatV2", [values, apply("Reshape", x, [-1])], 0),
            apply("Maximum", sizes, size),
            count + np.int64(1),
        )

    def joined(dataset: Dataset, kind: np.dtype[Any]) -> SparseTensor:
        empty = np.zeros((0, 1 + rank), np.int64), np.zeros(0, kind), np.zeros(rank, np.int64), np.int64(0)
        places, values, sizes, count = dataset.reduce(empty, add)
        sizes = apply("SelectV2", apply("Less", limit, np.zeros_like(limit)), sizes, limit)
        whole = apply("ConcatV2", [apply("Reshape", count, [1]), sizes], 0)
        result = SparseTensor(places, values, whole)
        result._known = TensorShape([None]).concatenate(shape)
        return result

    def transform(dataset: Dataset) -> Dataset:
        leaf = dataset._structure
        if not isinstance(leaf, Leaf):
            raise TypeError("DenseToSparseDataset requires an input whose elements have a single component.")
        kind = leaf.dtype.np_dtype
        windows = dataset.window(_int64(batch_size, "batch_size"))
        return windows.flat_map(lambda window: Dataset.from_tensors(joined(window, kind)))

    return transform


def _there(x: Tensor) -> Tensor:
    return apply("Fill", apply("Shape", x), np.True_)


# -- resampling --------------------------------------------------------------------------------------


@export("data.experimental.rejection_resample", "contrib.data.rejection_resample")
def rejection_resample(
    class_func: Callable[..., Any],
    target_dist: Sequence[float] | Array,
    initial_dist: TensorLike = None,
    seed: int | None = None,
) -> Transformation:
    """Pairs of a class and an element, some left out so that the classes are spread as `target_dist` says.

    How they are spread in the dataset is counted as it is read, unless `initial_dist` says it.
    """
    goal = np.asarray(target_dist, np.float32)

    def chance(spread: Tensor, label: Tensor) -> Tensor:
        tiny = np.float32(1e-9)
        ratios = apply("RealDiv", goal, apply("Maximum", spread, tiny))
        return apply("GatherV2", ratios / apply("Max", ratios, [0]), label, 0)

    def drawn(likely: Tensor) -> Tensor:
        first, second = get_seed(seed)
        seeds: dict[str, Any] = {"seed": first or 0, "seed2": second or 0}
        none = constant(np.zeros(0, np.int32))
        return apply("Less", apply("RandomUniform", none, dtype=dtypes.float32, **seeds), likely)

    def labelled(*element: Any) -> tuple[Tensor, Any]:
        whole = element[0] if len(element) == 1 else element
        return apply("Cast", to_tensor(class_func(*element)), DstT=dtypes.int32), whole

    def counted(counts: Tensor, pair: Any) -> Any:
        label, whole = pair
        counts = counts + apply("OneHot", label, len(goal), np.float32(1), np.float32(0))
        return counts, (label, chance(counts / apply("Sum", counts, [0]), label), whole)

    def transform(dataset: Dataset) -> Dataset:
        pairs = dataset.map(labelled)
        if initial_dist is not None:
            spread = apply("Cast", to_tensor(initial_dist), DstT=dtypes.float32)
            rated = pairs.map(lambda label, whole: (label, chance(spread, label), whole))
        else:
            rated = pairs.apply(scan(np.ones(len(goal), np.float32), counted))
        kept = rated.filter(lambda label, likely, whole: drawn(likely))
        return kept.map(lambda label, likely, whole: (label, whole))

    return transform


# -- statistics and wishes ---------------------------------------------------------------------------


@export("data.experimental.bytes_produced_stats", "contrib.data.bytes_produced_stats")
def bytes_produced_stats(tag: TensorLike) -> Transformation:
    """The dataset itself: these statistics are not gathered."""
    return lambda dataset: dataset


@export("data.experimental.latency_stats", "contrib.data.latency_stats")
def latency_stats(tag: TensorLike) -> Transformation:
    """The dataset itself: these statistics are not gathered."""
    return lambda dataset: dataset


@export("data.experimental.StatsAggregator", "contrib.data.StatsAggregator")
class StatsAggregator:
    """Where a dataset's statistics would be gathered: none are, so its summary is always empty."""

    def __init__(self) -> None:
        return

    def get_summary(self) -> Tensor:
        """A serialized `tf.Summary`, which is empty."""
        with name_scope(None, "StatsAggregatorSummary"):
            return constant(b"")
