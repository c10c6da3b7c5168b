"""The operations that make datasets without calling functions. Their tensors are variants that carry a `Node` inside this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data import batches, cache_prefetch, transforms
from tensorfleet.api.data.blocks import Column
from tensorfleet.api.data.nodes import (
    ColumnSlices,
    CountingRun,
    DatasetRun,
    FilesRun,
    Node,
    RandomRun,
    StartNode,
    on_positions,
)
from tensorfleet.api.data.record_origin import Opener, opener
from tensorfleet.api.data.shuffling import shuffled
from tensorfleet.api.data.structure import ELEMENTS
from tensorfleet.base import errors
from tensorfleet.base import files as gfile
from tensorfleet.base.dtypes import DType
from tensorfleet.base.errors import invalid
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.sparse_tensor import SparseTensorValue
from tensorfleet.kernels import philox
from tensorfleet.ops.common import SCALAR, vector_of
from tensorfleet.ops.ragged.value import RaggedTensorValue

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.host_ops import StepHostContext
    from tensorfleet.runtime.scheduling.step import ExecutionContext

NOTE = "; metadata: string = ''"
_INPUT_ELEMENTS = "Toutput_types: list(type); output_shapes: list(shape)"
INPUT = "input_dataset: variant"


def dataset_op(
    name: str, inputs: str, attrs: str, stateful: bool = False
) -> Callable[[Callable[..., Node]], Callable[..., Node]]:
    """Registers the decorated kernel as an operation that makes a dataset."""

    def register(kernel: Callable[..., Node]) -> Callable[..., Node]:
        op(
            name, f"{inputs} -> handle: variant", attrs, shape=lambda op: SCALAR, host=True, stateful=stateful
        )(kernel)
        not_differentiable(name)
        return kernel

    return register


def _texts(value: Array) -> list[bytes]:
    return np.asarray(value, object).ravel().tolist()


def run_of(node: Node, make: Callable[[DatasetRun], DatasetRun]) -> Node:
    """A dataset whose runs are transformed."""
    return StartNode(lambda step: make(node.start(step)))


def _moved(node: Node, make: Callable[[DatasetRun], DatasetRun]) -> Node:
    """Like `run_of`, for a transformation that only chooses and orders elements."""
    return StartNode(lambda step: on_positions(node.start(step), make))


# -- sources -----------------------------------------------------------------------------------------


def _column(value: Any) -> Column:
    """A component as a column of one row per slice, which lies together: taking rows from it copies nothing else."""
    carried = isinstance(value, SparseTensorValue | RaggedTensorValue)
    return batches.rows_of(value) if carried else np.ascontiguousarray(value)


@dataset_op("TensorDataset", "components: list(Toutput_types)", _INPUT_ELEMENTS + NOTE, stateful=True)
def _tensor(ctx: StepHostContext, components: list[Any]) -> Node:
    alone = SparseTensorValue | RaggedTensorValue | Node
    whole = [[c] if isinstance(c, alone) else np.asarray(c)[None] for c in components]
    return ColumnSlices(whole, 1)


@dataset_op(
    "TensorSliceDataset",
    "components: list(Toutput_types)",
    f"{_INPUT_ELEMENTS}; is_files: bool = false{NOTE}; replicate_on_split: bool = false",
    stateful=True,
)
def _tensor_slice(ctx: StepHostContext, components: list[Any]) -> Node:
    columns = [_column(c) for c in components]
    sizes = [len(c) for c in columns]
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            raise invalid(
                f"All components must have the same size in the 0th dimension: component {i} has {size} rows, component "
                f"0 has {sizes[0]}."
            )
    return ColumnSlices(columns, sizes[0])


@dataset_op(
    "SparseTensorSliceDataset", "indices: int64, values: Tvalues, dense_shape: int64", "Tvalues: type", True
)
def _sparse_slice(ctx: StepHostContext, indices: Array, values: Array, dense_shape: Array) -> Node:
    if len(indices) != len(values):
        raise invalid(
            f"Number of values must match first dimension of indices. Got {len(values)} values, indices shape: "
            f"{list(np.shape(indices))}"
        )
    if len(indices) and (np.diff(indices[:, 0]) < 0).any():
        raise errors.UnimplementedError(
            None,
            None,
            "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered input is not "
            "currently supported. Use tf.sparse.reorder.",
        )
    rows = batches.rows_of(SparseTensorValue(indices, values, dense_shape))
    return ColumnSlices(
        [[r.indices for r in rows], [r.values for r in rows], [r.dense_shape for r in rows]], len(rows)
    )


@dataset_op(
    "RangeDataset",
    "start: int64, stop: int64, step: int64",
    f"{ELEMENTS}{NOTE}; replicate_on_split: bool = false",
    stateful=True,
)
def _range(ctx: StepHostContext, start: Array, stop: Array, step: Array) -> Node:
    if int(step) == 0:
        raise invalid("step must be a non-zero integer.")
    return StartNode(lambda s: CountingRun(int(start), int(stop), int(step)))


@dataset_op("RandomDataset", "seed: int64, seed2: int64", ELEMENTS + NOTE, stateful=True)
def _random(ctx: StepHostContext, seed: Array, seed2: Array) -> Node:
    return StartNode(lambda step: RandomRun(philox.initial_state(int(seed), int(seed2))))


@dataset_op("MatchingFilesDataset", "patterns: string", "", stateful=True)
def _matching_files(ctx: StepHostContext, patterns: Array) -> Node:
    asked = [p.decode() for p in _texts(patterns)]
    names = sorted({name.encode() for pattern in asked for name in gfile.glob(pattern)})
    if not names:
        raise errors.NotFoundError(None, None, f"No files matched pattern: {', '.join(asked)}")
    column = np.empty(len(names), object)
    column[:] = names
    return ColumnSlices([column], len(names))


_FILES = "filenames: string, compression_type: string, buffer_size: int64"


def _files(names: Array, begin: Opener) -> Node:
    listed = _texts(names)
    return StartNode(lambda step: FilesRun(listed, begin))


@dataset_op("TextLineDataset", _FILES, "metadata: string = ''", stateful=True)
def _text_lines(ctx: StepHostContext, names: Array, compression: Array, buffer_size: Array) -> Node:
    return _files(names, opener("lines", _texts(compression)[0]))


@dataset_op("TFRecordDataset", _FILES, "metadata: string = ''", stateful=True)
def _records(ctx: StepHostContext, names: Array, compression: Array, buffer_size: Array) -> Node:
    return _files(names, opener("records", _texts(compression)[0]))


@dataset_op(
    "FixedLengthRecordDatasetV2",
    "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, buffer_size: int64, "
    "compression_type: string",
    "metadata: string = ''",
    stateful=True,
)
def _pieces(
    ctx: StepHostContext,
    names: Array,
    header: Array,
    size: Array,
    footer: Array,
    buffer_size: Array,
    compression: Array,
) -> Node:
    if int(size) <= 0:
        raise invalid("record_bytes must be > 0")
    begin = opener("pieces", _texts(compression)[0], size=int(size), header=int(header), footer=int(footer))
    return _files(names, begin)


# -- choosing and ordering ---------------------------------------------------------------------------


@dataset_op("TakeDataset", f"{INPUT}, count: int64", ELEMENTS + NOTE)
def _take(ctx: StepHostContext, node: Node, count: Array) -> Node:
    return _moved(node, lambda run: transforms.TakeRun(run, int(count)))


@dataset_op("SkipDataset", f"{INPUT}, count: int64", ELEMENTS + NOTE)
def _skip(ctx: StepHostContext, node: Node, count: Array) -> Node:
    return _moved(node, lambda run: transforms.SkipRun(run, int(count)))


@dataset_op(
    "ShardDataset",
    f"{INPUT}, num_shards: int64, index: int64",
    f"require_non_empty: bool = false; {ELEMENTS}{NOTE}",
)
def _shard(ctx: StepHostContext, node: Node, num_shards: Array, index: Array) -> Node:
    count, at = int(num_shards), int(index)
    if count <= 0:
        raise invalid(f"Number of shards must be greater than zero (currently num_shards = {count}).")
    if not 0 <= at < count:
        raise invalid(f"Index must be between 0 and {count - 1} (currently index = {at}).")
    return _moved(node, lambda run: transforms.ShardRun(run, count, at))


@dataset_op("RepeatDataset", f"{INPUT}, count: int64", ELEMENTS + NOTE)
def _repeat(ctx: StepHostContext, node: Node, count: Array) -> Node:
    return transforms.repeated(node, int(count))


_SEEDS = "seed: int64, seed2: int64"
# The value of `tf.data.UNKNOWN_CARDINALITY`.
_UNBOUNDED = -2  # a buffer for the whole dataset


def _shuffled(node: Node, size: Array, seed: Array, seed2: Array, again: bool) -> Node:
    if int(size) <= 0 and int(size) != _UNBOUNDED:
        raise invalid(f"buffer_size must be greater than zero, not {int(size)}.")
    buffer_size = sys.maxsize if int(size) == _UNBOUNDED else int(size)
    return shuffled(node, buffer_size, (int(seed), int(seed2)), again)


@dataset_op(
    "ShuffleDataset",
    f"{INPUT}, buffer_size: int64, {_SEEDS}",
    f"reshuffle_each_iteration: bool = true; {ELEMENTS}{NOTE}",
)
def _shuffle(
    ctx: StepHostContext,
    node: Node,
    size: Array,
    seed: Array,
    seed2: Array,
    *,
    reshuffle_each_iteration: bool,
) -> Node:
    return _shuffled(node, size, seed, seed2, reshuffle_each_iteration)


@dataset_op(
    "ShuffleAndRepeatDataset",
    f"{INPUT}, buffer_size: int64, {_SEEDS}, count: int64",
    f"{ELEMENTS}; reshuffle_each_iteration: bool = true{NOTE}",
)
def _shuffle_and_repeat(
    ctx: StepHostContext,
    node: Node,
    size: Array,
    seed: Array,
    seed2: Array,
    count: Array,
    *,
    reshuffle_each_iteration: bool,
) -> Node:
    return transforms.repeated(_shuffled(node, size, seed, seed2, reshuffle_each_iteration), int(count))


@dataset_op("ZipDataset", "input_datasets: N * variant", f"{ELEMENTS}; N: int{NOTE}")
def _zip(ctx: StepHostContext, nodes: list[Node]) -> Node:
    return StartNode(lambda step: transforms.ZipRun([node.start(step) for node in nodes]))


@dataset_op("ConcatenateDataset", f"{INPUT}, another_dataset: variant", ELEMENTS + NOTE)
def _concatenate(ctx: StepHostContext, node: Node, other: Node) -> Node:
    return StartNode(lambda step: transforms.ChainRun([node, other]))


@dataset_op(
    "DirectedInterleaveDataset",
    "selector_input_dataset: variant, data_input_datasets: N * variant",
    f"{ELEMENTS}; N: int; stop_on_empty_dataset: bool = false",
)
def _directed(ctx: StepHostContext, chooser: Node, nodes: list[Node], *, stop_on_empty_dataset: bool) -> Node:
    def start(step: ExecutionContext) -> DatasetRun:
        runs = [node.start(step) for node in nodes]
        return transforms.DirectedRun(chooser.start(step), runs, stop_on_empty_dataset)

    return StartNode(start)


# -- batches -----------------------------------------------------------------------------------------


def checked_size(size: Array) -> int:
    """The size of a batch."""
    if int(size) <= 0:
        raise invalid("batch_size must be greater than zero.")
    return int(size)


@dataset_op(
    "BatchDatasetV2",
    f"{INPUT}, batch_size: int64, drop_remainder: bool",
    f"parallel_copy: bool = false; {ELEMENTS}{NOTE}",
)
def _batch(ctx: StepHostContext, node: Node, batch_size: Array, drop_remainder: Array) -> Node:
    size, drop = checked_size(batch_size), bool(drop_remainder)
    return run_of(node, lambda run: batches.BatchRun(run, size, drop, batches.stacked))


@dataset_op(
    "PaddedBatchDatasetV2",
    f"{INPUT}, batch_size: int64, padded_shapes: N * int64, padding_values: list(Toutput_types), drop_remainder: bool",
    f"parallel_copy: bool = false; {_INPUT_ELEMENTS}; N: int{NOTE}",
)
def _padded_batch(
    ctx: StepHostContext,
    node: Node,
    batch_size: Array,
    shapes: list[Array],
    fills: list[Array],
    drop_remainder: Array,
    *,
    Toutput_types: list[DType],
) -> Node:
    size, drop = checked_size(batch_size), bool(drop_remainder)
    dims = [np.asarray(s).ravel().tolist() for s in shapes]
    if (least := min((d for shape in dims for d in shape), default=0)) < -1:
        raise invalid(f"Dimension {least} must be >= -1")
    values = [np.asarray(f)[()] for f in fills]
    stack = batches.padder(dims, values, Toutput_types)
    return run_of(node, lambda run: batches.BatchRun(run, size, drop, stack))


@dataset_op("UnbatchDataset", INPUT, ELEMENTS + NOTE)
def _unbatch(ctx: StepHostContext, node: Node) -> Node:
    return run_of(node, batches.UnbatchRun)


@dataset_op(
    "WindowDataset",
    f"{INPUT}, size: int64, shift: int64, stride: int64, drop_remainder: bool",
    ELEMENTS + NOTE,
)
def _window(
    ctx: StepHostContext, node: Node, size: Array, shift: Array, stride: Array, drop_remainder: Array
) -> Node:
    for what, value in (("size", size), ("shift", shift), ("stride", stride)):
        if int(value) <= 0:
            raise invalid(f"Window {what} must be greater than zero.")
    given = int(size), int(shift), int(stride), bool(drop_remainder)
    return run_of(node, lambda run: batches.WindowRun(run, *given))


# -- keeping -----------------------------------------------------------------------------------------


@dataset_op("CacheDataset", f"{INPUT}, filename: string", ELEMENTS + NOTE)
def _cache(ctx: StepHostContext, node: Node, filename: Array) -> Node:
    name = _texts(filename)[0].decode()
    return cache_prefetch.FileCache(node, name) if name else cache_prefetch.MemoryCache(node)


@dataset_op(
    "PrefetchDataset",
    f"{INPUT}, buffer_size: int64",
    f"{ELEMENTS}; slack_period: int = 0; legacy_autotune: bool = true; buffer_size_min: int = 0{NOTE}",
)
def _prefetch(ctx: StepHostContext, node: Node, buffer_size: Array) -> Node:
    room = int(buffer_size)
    if room < -1:
        raise invalid("buffer_size must be >= 0 or set buffer_size to be -1 (AUTOTUNE) for auto-tuning")
    if not room:
        return node
    return StartNode(lambda step: cache_prefetch.PrefetchRun(node.start(step), room if room > 0 else 4, step))


@dataset_op("IgnoreErrorsDataset", INPUT, f"{ELEMENTS}; log_warning: bool = false")
def _ignore_errors(ctx: StepHostContext, node: Node) -> Node:
    return run_of(node, transforms.IgnoreErrorsRun)


@dataset_op("UniqueDataset", INPUT, ELEMENTS + NOTE)
def _unique(ctx: StepHostContext, node: Node) -> Node:
    return run_of(node, transforms.UniqueRun)


# -- sparse components -------------------------------------------------------------------------------


@op(
    "FleetSparseToVariant",
    "indices: int64, values: T, dense_shape: int64 -> handle: variant",
    "T: type",
    host=True,
)
def _sparse_to_variant(
    ctx: StepHostContext, indices: Array, values: Array, dense_shape: Array
) -> SparseTensorValue:
    return SparseTensorValue(np.asarray(indices), np.asarray(values), np.asarray(dense_shape))


def _sparse_shapes(op: Operation) -> list[TensorShape]:
    rank = op._attrs["shape"].rank
    return [TensorShape([None, rank]), vector_of(None), vector_of(rank)]


@op(
    "FleetVariantToSparse",
    "handle: variant -> indices: int64, values: Tvalues, dense_shape: int64",
    "Tvalues: type; shape: shape = unknown",
    shape=_sparse_shapes,
    host=True,
)
def _variant_to_sparse(ctx: StepHostContext, value: SparseTensorValue) -> tuple[Array, ...]:
    return tuple(value)


def _row_shape(op: Operation) -> TensorShape:
    given, rank = op._inputs[0].shape, op._inputs[1].shape.as_list()[0]
    return given if given.rank == rank else TensorShape([None] * rank)


@op("FleetCheckRow", "x: T, row_shape: int64[1] -> y: T", "T: type", shape=_row_shape, host=True)
def _check_row(ctx: StepHostContext, x: Array, row_shape: Array) -> Array:
    shape, room = list(np.shape(x)), row_shape.tolist()
    had = f"DenseToSparseBatchDataset had input shape ({shape}) that is"
    if len(shape) != len(room):
        raise invalid(f"{had} incompatible with the row shape ({room}).")
    if any(0 <= most < d for d, most in zip(shape, room, strict=True)):
        raise errors.DataLossError(None, None, f"{had} larger than the row shape ({room}).")
    return x


not_differentiable("FleetSparseToVariant", "FleetVariantToSparse", "FleetCheckRow")
