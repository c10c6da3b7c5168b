"""The operations that make datasets. Their tensors are variants that carry a `Node` inside this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet import errors
from tensorfleet.data import batches, keeping, mapping, transforms
from tensorfleet.data.blocks import Column
from tensorfleet.data.calls import Function
from tensorfleet.data.mapping import ONLY
from tensorfleet.data.nodes import Counting, Files, From, Node, Run, Slices, on_positions, opener
from tensorfleet.graph.functions import find_function
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.sparse_tensor import SparseTensorValue
from tensorfleet.ops.common import SCALAR, vector_of
from tensorfleet.shapes import TensorShape

_IS = "output_types: list(type); output_shapes: list(shape)"
_NOTE = "; metadata: string = ''"
_T_IS = "Toutput_types: list(type); output_shapes: list(shape)"
_INPUT = "input_dataset: variant"
_CALLS = "other_arguments: list(Targuments)"
_F = f"f: func; Targuments: list(type); {_IS}"


def _dataset(name: str, inputs: str, attrs: str, stateful: bool = False) -> Callable[[Callable], Callable]:
    def register(kernel: Callable) -> Callable:
        op(
            name, f"{inputs} -> handle: variant", attrs, shape=lambda op: SCALAR, host=True, stateful=stateful
        )(kernel)
        not_differentiable(name)
        return kernel

    return register


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


def _function(ctx: Any, name: Any, captured: Sequence[Any]) -> Function:
    return Function(find_function(ctx.op.graph, name), captured)


def _texts(value: Any) -> list[bytes]:
    return np.asarray(value, object).ravel().tolist()


def _run_of(node: Node, make: Callable[[Run], Run]) -> Node:
    return From(mapping.starter(node, make))


def _moved(node: Node, make: Callable[[Run], Run]) -> Node:
    """For what only chooses and orders elements."""
    return From(lambda step: on_positions(node.start(step), make))


# -- sources -----------------------------------------------------------------------------------------


def _column(value: Any) -> Column:
    """A component as a column of one row per slice."""
    return batches.rows_of(value) if isinstance(value, SparseTensorValue) else np.asarray(value)


@_dataset("TensorDataset", "components: list(Toutput_types)", _T_IS + _NOTE, stateful=True)
def _tensor(ctx: Any, components: list) -> Node:
    whole = [[c] if isinstance(c, SparseTensorValue | Node) else np.asarray(c)[None] for c in components]
    return Slices(whole, 1)


@_dataset(
    "TensorSliceDataset",
    "components: list(Toutput_types)",
    f"{_T_IS}; is_files: bool = false{_NOTE}; replicate_on_split: bool = false",
    stateful=True,
)
def _tensor_slice(ctx: Any, components: list) -> Node:
    columns = [_column(c) for c in components]
    sizes = [len(c) for c in columns]
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            raise _invalid(
                f"All components must have the same size in the 0th dimension: component {i} has {size} rows, component "
                f"0 has {sizes[0]}."
            )
    return Slices(columns, sizes[0])


@_dataset(
    "SparseTensorSliceDataset", "indices: int64, values: Tvalues, dense_shape: int64", "Tvalues: type", True
)
def _sparse_slice(ctx: Any, indices: Any, values: Any, dense_shape: Any) -> Node:
    rows = batches.rows_of(SparseTensorValue(indices, values, dense_shape))
    return Slices(
        [[r.indices for r in rows], [r.values for r in rows], [r.dense_shape for r in rows]], len(rows)
    )


@_dataset(
    "RangeDataset",
    "start: int64, stop: int64, step: int64",
    f"{_IS}{_NOTE}; replicate_on_split: bool = false",
    stateful=True,
)
def _range(ctx: Any, start: Any, stop: Any, step: Any) -> Node:
    if int(step) == 0:
        raise _invalid("step must be a non-zero integer.")
    return From(lambda s: Counting(int(start), int(stop), int(step)))


_FILES = "filenames: string, compression_type: string, buffer_size: int64"


def _files(names: Any, begin: Callable[[bytes], Any]) -> Node:
    listed = _texts(names)
    return From(lambda step: Files(listed, begin))


@_dataset("TextLineDataset", _FILES, "metadata: string = ''", stateful=True)
def _text_lines(ctx: Any, names: Any, compression: Any, buffer_size: Any) -> Node:
    return _files(names, opener("lines", _texts(compression)[0]))


@_dataset("TFRecordDataset", _FILES, "metadata: string = ''", stateful=True)
def _records(ctx: Any, names: Any, compression: Any, buffer_size: Any) -> Node:
    return _files(names, opener("records", _texts(compression)[0]))


@_dataset(
    "FixedLengthRecordDatasetV2",
    "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, buffer_size: int64, "
    "compression_type: string",
    "metadata: string = ''",
    stateful=True,
)
def _pieces(
    ctx: Any, names: Any, header: Any, size: Any, footer: Any, buffer_size: Any, compression: Any
) -> Node:
    if int(size) <= 0:
        raise _invalid("record_bytes must be > 0")
    begin = opener("pieces", _texts(compression)[0], size=int(size), header=int(header), footer=int(footer))
    return _files(names, begin)


_GENERATES = (
    "init_func_other_args: list(Tinit_func_args), next_func_other_args: list(Tnext_func_args), "
    "finalize_func_other_args: list(Tfinalize_func_args)"
)


@_dataset(
    "GeneratorDataset",
    _GENERATES,
    "init_func: func; next_func: func; finalize_func: func; Tinit_func_args: list(type); "
    f"Tnext_func_args: list(type); Tfinalize_func_args: list(type); {_IS}{_NOTE}",
    stateful=True,
)
def _generator(
    ctx: Any, begin: list, after: list, finish: list, *, init_func: Any, next_func: Any, finalize_func: Any
) -> Node:
    given = ((init_func, begin), (next_func, after), (finalize_func, finish))
    functions = [_function(ctx, name, values) for name, values in given]
    return From(lambda step: mapping.Generate(*functions))


# -- choosing and ordering ---------------------------------------------------------------------------


@_dataset("TakeDataset", f"{_INPUT}, count: int64", _IS + _NOTE)
def _take(ctx: Any, node: Node, count: Any) -> Node:
    return _moved(node, lambda run: transforms.Take(run, int(count)))


@_dataset("SkipDataset", f"{_INPUT}, count: int64", _IS + _NOTE)
def _skip(ctx: Any, node: Node, count: Any) -> Node:
    return _moved(node, lambda run: transforms.Skip(run, int(count)))


@_dataset(
    "ShardDataset",
    f"{_INPUT}, num_shards: int64, index: int64",
    f"require_non_empty: bool = false; {_IS}{_NOTE}",
)
def _shard(ctx: Any, node: Node, num_shards: Any, index: Any) -> Node:
    count, at = int(num_shards), int(index)
    if count <= 0:
        raise _invalid(f"Number of shards must be greater than zero (currently num_shards = {count}).")
    if not 0 <= at < count:
        raise _invalid(f"Index must be between 0 and {count - 1} (currently index = {at}).")
    return _moved(node, lambda run: transforms.Shard(run, count, at))


@_dataset("RepeatDataset", f"{_INPUT}, count: int64", _IS + _NOTE)
def _repeat(ctx: Any, node: Node, count: Any) -> Node:
    return transforms.repeated(node, int(count))


_SEEDS = "seed: int64, seed2: int64"


def _shuffled(node: Node, size: Any, seed: Any, seed2: Any, again: bool) -> Node:
    if int(size) <= 0 and int(size) != -2:
        raise _invalid(f"buffer_size must be greater than zero, not {int(size)}.")
    return transforms.shuffled(node, int(size), (int(seed), int(seed2)), again)


@_dataset(
    "ShuffleDataset",
    f"{_INPUT}, buffer_size: int64, {_SEEDS}",
    f"reshuffle_each_iteration: bool = true; {_IS}{_NOTE}",
)
def _shuffle(
    ctx: Any, node: Node, size: Any, seed: Any, seed2: Any, *, reshuffle_each_iteration: bool
) -> Node:
    return _shuffled(node, size, seed, seed2, reshuffle_each_iteration)


@_dataset(
    "ShuffleAndRepeatDataset",
    f"{_INPUT}, buffer_size: int64, {_SEEDS}, count: int64",
    f"{_IS}; reshuffle_each_iteration: bool = true{_NOTE}",
)
def _shuffle_and_repeat(
    ctx: Any, node: Node, size: Any, seed: Any, seed2: Any, count: Any, *, reshuffle_each_iteration: bool
) -> Node:
    return transforms.repeated(_shuffled(node, size, seed, seed2, reshuffle_each_iteration), int(count))


@_dataset("ZipDataset", "input_datasets: N * variant", f"{_IS}; N: int{_NOTE}")
def _zip(ctx: Any, nodes: list) -> Node:
    return From(lambda step: transforms.Zip([node.start(step) for node in nodes]))


@_dataset("ConcatenateDataset", f"{_INPUT}, another_dataset: variant", _IS + _NOTE)
def _concatenate(ctx: Any, node: Node, other: Node) -> Node:
    return From(lambda step: transforms.Chain([node, other]))


@_dataset(
    "DirectedInterleaveDataset",
    "selector_input_dataset: variant, data_input_datasets: N * variant",
    f"{_IS}; N: int; stop_on_empty_dataset: bool = false",
)
def _directed(ctx: Any, chooser: Node, nodes: list, *, stop_on_empty_dataset: bool) -> Node:
    begin = lambda step: [node.start(step) for node in nodes]  # noqa: E731
    return From(lambda step: transforms.Directed(chooser.start(step), begin(step), stop_on_empty_dataset))


# -- batches -----------------------------------------------------------------------------------------


def _checked_size(size: Any) -> int:
    if int(size) <= 0:
        raise _invalid("batch_size must be greater than zero.")
    return int(size)


@_dataset(
    "BatchDatasetV2",
    f"{_INPUT}, batch_size: int64, drop_remainder: bool",
    f"parallel_copy: bool = false; {_IS}{_NOTE}",
)
def _batch(ctx: Any, node: Node, batch_size: Any, drop_remainder: Any) -> Node:
    size, drop = _checked_size(batch_size), bool(drop_remainder)
    return _run_of(node, lambda run: batches.Batch(run, size, drop, batches.stacked))


@_dataset(
    "PaddedBatchDatasetV2",
    f"{_INPUT}, batch_size: int64, padded_shapes: N * int64, padding_values: list(Toutput_types), drop_remainder: bool",
    f"parallel_copy: bool = false; {_T_IS}; N: int{_NOTE}",
)
def _padded_batch(
    ctx: Any,
    node: Node,
    batch_size: Any,
    shapes: list,
    fills: list,
    drop_remainder: Any,
    *,
    Toutput_types: list,
) -> Node:
    size, drop = _checked_size(batch_size), bool(drop_remainder)
    dims = [np.asarray(s).ravel().tolist() for s in shapes]
    values = [np.asarray(f)[()] for f in fills]
    stack = batches.padder(dims, values, Toutput_types)
    return _run_of(node, lambda run: batches.Batch(run, size, drop, stack))


@_dataset("UnbatchDataset", _INPUT, _IS + _NOTE)
def _unbatch(ctx: Any, node: Node) -> Node:
    return _run_of(node, batches.Unbatch)


@_dataset(
    "WindowDataset",
    f"{_INPUT}, size: int64, shift: int64, stride: int64, drop_remainder: bool",
    _IS + _NOTE,
)
def _window(ctx: Any, node: Node, size: Any, shift: Any, stride: Any, drop_remainder: Any) -> Node:
    for what, value in (("size", size), ("shift", shift), ("stride", stride)):
        if int(value) <= 0:
            raise _invalid(f"Window {what} must be greater than zero.")
    given = int(size), int(shift), int(stride), bool(drop_remainder)
    return _run_of(node, lambda run: batches.Window(run, *given))


# -- keeping -----------------------------------------------------------------------------------------


@_dataset("CacheDataset", f"{_INPUT}, filename: string", _IS + _NOTE)
def _cache(ctx: Any, node: Node, filename: Any) -> Node:
    name = _texts(filename)[0].decode()
    return keeping.FileCache(node, name) if name else keeping.MemoryCache(node)


@_dataset(
    "PrefetchDataset",
    f"{_INPUT}, buffer_size: int64",
    f"{_IS}; slack_period: int = 0; legacy_autotune: bool = true; buffer_size_min: int = 0{_NOTE}",
)
def _prefetch(ctx: Any, node: Node, buffer_size: Any) -> Node:
    room = int(buffer_size)
    if room < -1:
        raise _invalid("buffer_size must be >= 0 or set buffer_size to be -1 (AUTOTUNE) for auto-tuning")
    if not room:
        return node
    return From(lambda step: keeping.Prefetch(node.start(step), room if room > 0 else 4, step))


@_dataset("IgnoreErrorsDataset", _INPUT, f"{_IS}; log_warning: bool = false")
def _ignore_errors(ctx: Any, node: Node) -> Node:
    return _run_of(node, transforms.IgnoreErrors)


@_dataset("UniqueDataset", _INPUT, _IS + _NOTE)
def _unique(ctx: Any, node: Node) -> Node:
    return _run_of(node, transforms.Unique)


# -- functions ---------------------------------------------------------------------------------------

_MAPS = "use_inter_op_parallelism: bool = true; preserve_cardinality: bool = false"


@_dataset("MapDataset", f"{_INPUT}, {_CALLS}", f"{_F}; {_MAPS}; force_synchronous: bool = false{_NOTE}")
def _map(ctx: Any, node: Node, captured: list, *, f: Any) -> Node:
    function = _function(ctx, f, captured)
    return _run_of(node, lambda run: mapping.Map(run, function))


@_dataset(
    "ParallelMapDataset",
    f"{_INPUT}, {_CALLS}, num_parallel_calls: int32",
    f"{_F}; use_inter_op_parallelism: bool = true; sloppy: bool = false; preserve_cardinality: bool = false{_NOTE}",
)
def _parallel_map(ctx: Any, node: Node, captured: list, calls: Any, *, f: Any) -> Node:
    if int(calls) <= 0 and int(calls) != -1:
        raise _invalid("num_parallel_calls must be greater than zero.")
    function = _function(ctx, f, captured)
    return _run_of(node, lambda run: mapping.Map(run, function))


@_dataset(
    "MapAndBatchDataset",
    f"{_INPUT}, {_CALLS}, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
    f"{_F}; preserve_cardinality: bool = false{_NOTE}",
)
def _map_and_batch(
    ctx: Any, node: Node, captured: list, batch_size: Any, calls: Any, drop_remainder: Any, *, f: Any
) -> Node:
    function, size, drop = _function(ctx, f, captured), _checked_size(batch_size), bool(drop_remainder)
    return _run_of(node, lambda run: batches.Batch(mapping.Map(run, function), size, drop, batches.stacked))


@_dataset("FilterDataset", f"{_INPUT}, {_CALLS}", f"predicate: func; Targuments: list(type); {_IS}{_NOTE}")
def _filter(ctx: Any, node: Node, captured: list, *, predicate: Any) -> Node:
    function = _function(ctx, predicate, captured)
    return _run_of(node, lambda run: mapping.Filter(run, function))


@_dataset("TakeWhileDataset", f"{_INPUT}, {_CALLS}", f"predicate: func; Targuments: list(type); {_IS}{_NOTE}")
def _take_while(ctx: Any, node: Node, captured: list, *, predicate: Any) -> Node:
    function = _function(ctx, predicate, captured)
    return _run_of(node, lambda run: mapping.TakeWhile(run, function))


@_dataset("FlatMapDataset", f"{_INPUT}, {_CALLS}", _F + _NOTE)
def _flat_map(ctx: Any, node: Node, captured: list, *, f: Any) -> Node:
    function = _function(ctx, f, captured)
    return _run_of(node, lambda run: mapping.Interleave(run, function, 1, ONLY))


def _interleaved(node: Node, function: Function, cycle_length: Any, block_length: Any) -> Node:
    cycle, block = int(cycle_length), int(block_length)
    if cycle == -1:
        cycle = 4
    if cycle <= 0:
        raise _invalid("cycle_length must be greater than zero.")
    if block <= 0:
        raise _invalid("block_length must be greater than zero.")
    return _run_of(node, lambda run: mapping.Interleave(run, function, cycle, block))


@_dataset("InterleaveDataset", f"{_INPUT}, {_CALLS}, cycle_length: int64, block_length: int64", _F + _NOTE)
def _interleave(
    ctx: Any, node: Node, captured: list, cycle_length: Any, block_length: Any, *, f: Any
) -> Node:
    return _interleaved(node, _function(ctx, f, captured), cycle_length, block_length)


@_dataset(
    "ParallelInterleaveDatasetV2",
    f"{_INPUT}, {_CALLS}, cycle_length: int64, block_length: int64, num_parallel_calls: int64",
    f"{_F}; sloppy: bool = false{_NOTE}",
)
def _parallel_interleave(
    ctx: Any, node: Node, captured: list, cycle_length: Any, block_length: Any, calls: Any, *, f: Any
) -> Node:
    return _interleaved(node, _function(ctx, f, captured), cycle_length, block_length)


@_dataset(
    "ScanDataset",
    f"{_INPUT}, initial_state: list(Tstate), {_CALLS}",
    f"f: func; Tstate: list(type); Targuments: list(type); {_IS}; preserve_cardinality: bool = false; "
    f"use_default_device: bool = true{_NOTE}",
)
def _scan(ctx: Any, node: Node, state: list, captured: list, *, f: Any) -> Node:
    function = _function(ctx, f, captured)
    return _run_of(node, lambda run: mapping.Scan(run, function, state))


@_dataset(
    "GroupByWindowDataset",
    f"{_INPUT}, key_func_other_arguments: list(Tkey_func_other_arguments), "
    "reduce_func_other_arguments: list(Treduce_func_other_arguments), "
    "window_size_func_other_arguments: list(Twindow_size_func_other_arguments)",
    "key_func: func; reduce_func: func; window_size_func: func; Tkey_func_other_arguments: list(type); "
    "Treduce_func_other_arguments: list(type); Twindow_size_func_other_arguments: list(type); "
    f"{_IS}{_NOTE}",
)
def _group_by_window(
    ctx: Any,
    node: Node,
    key: list,
    reduce: list,
    size: list,
    *,
    key_func: Any,
    reduce_func: Any,
    window_size_func: Any,
) -> Node:
    given = ((key_func, key), (reduce_func, reduce), (window_size_func, size))
    functions = [_function(ctx, name, values) for name, values in given]
    return _run_of(node, lambda run: mapping.GroupByWindow(run, *functions))


def _declared_shapes(op: Operation) -> list[TensorShape]:
    return list(op._attrs["output_shapes"])


@op(
    "ReduceDataset",
    f"{_INPUT}, initial_state: list(Tstate), {_CALLS} -> components: list(output_types)",
    f"f: func; Tstate: list(type); Targuments: list(type); {_IS}; use_inter_op_parallelism: bool = true{_NOTE}",
    shape=_declared_shapes,
    host=True,
    blocks=True,
    stateful=True,
)
def _reduce(ctx: Any, node: Node, state: list, captured: list, *, f: Any) -> tuple:
    return tuple(mapping.reduced(node, _function(ctx, f, captured), state, ctx.step))


not_differentiable("ReduceDataset")


# -- sparse components -------------------------------------------------------------------------------


@op(
    "FleetSparseToVariant",
    "indices: int64, values: T, dense_shape: int64 -> handle: variant",
    "T: type",
    host=True,
)
def _sparse_to_variant(ctx: Any, indices: Any, values: Any, dense_shape: Any) -> SparseTensorValue:
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
def _variant_to_sparse(ctx: Any, value: SparseTensorValue) -> tuple:
    return tuple(value)


not_differentiable("FleetSparseToVariant", "FleetVariantToSparse")
