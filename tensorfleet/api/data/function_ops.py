"""The operations that make datasets by calling functions, and the one that reduces a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.data import batches, mapping
from tensorfleet.api.data.calls import DatasetFunction
from tensorfleet.api.data.dataset_ops import INPUT, NOTE, checked_size, dataset_op, run_of
from tensorfleet.api.data.interleaving import ENDLESS_TURN, InterleaveRun
from tensorfleet.api.data.nodes import Node, StartNode
from tensorfleet.api.data.parallel import ParallelMapRun
from tensorfleet.api.data.structure import ELEMENTS, declared_shapes
from tensorfleet.base.errors import invalid
from tensorfleet.base.types import Array
from tensorfleet.graph.functions import find_function
from tensorfleet.graph.registry import not_differentiable, op

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.host_ops import HostContext

_CALLS = "other_arguments: list(Targuments)"
_F = f"f: func; Targuments: list(type); {ELEMENTS}"
_MAPS = "use_inter_op_parallelism: bool = true; preserve_cardinality: bool = false"
# How many elements of each open dataset a parallel interleave fetches before their turn comes, at most; and of few
# datasets together, since each time that a thread wakes costs as much as some elements.
_AHEAD_OF_EACH, _AHEAD_OF_ALL = 16, 128


def _function(ctx: HostContext, name: str, captured: Sequence[Any]) -> DatasetFunction:
    return DatasetFunction(find_function(ctx.op.graph, name), captured)


_GENERATES = (
    "init_func_other_args: list(Tinit_func_args), next_func_other_args: list(Tnext_func_args), "
    "finalize_func_other_args: list(Tfinalize_func_args)"
)


@dataset_op(
    "GeneratorDataset",
    _GENERATES,
    "init_func: func; next_func: func; finalize_func: func; Tinit_func_args: list(type); "
    f"Tnext_func_args: list(type); Tfinalize_func_args: list(type); {ELEMENTS}{NOTE}",
    stateful=True,
)
def _generator(
    ctx: HostContext,
    begin: list[Any],
    after: list[Any],
    finish: list[Any],
    *,
    init_func: str,
    next_func: str,
    finalize_func: str,
) -> Node:
    given = ((init_func, begin), (next_func, after), (finalize_func, finish))
    functions = [_function(ctx, name, values) for name, values in given]
    return StartNode(lambda step: mapping.GenerateRun(*functions))


@dataset_op("MapDataset", f"{INPUT}, {_CALLS}", f"{_F}; {_MAPS}; force_synchronous: bool = false{NOTE}")
def _map(ctx: HostContext, node: Node, captured: list[Any], *, f: str) -> Node:
    function = _function(ctx, f, captured)
    return run_of(node, lambda run: mapping.MapRun(run, function))


@dataset_op(
    "ParallelMapDataset",
    f"{INPUT}, {_CALLS}, num_parallel_calls: int32",
    f"{_F}; use_inter_op_parallelism: bool = true; sloppy: bool = false; preserve_cardinality: bool = false{NOTE}",
)
def _parallel_map(ctx: HostContext, node: Node, captured: list[Any], calls: Array, *, f: str) -> Node:
    if int(calls) <= 0 and int(calls) != -1:
        raise invalid("num_parallel_calls must be greater than zero.")
    return _mapped(node, _function(ctx, f, captured), int(calls))


def _mapped(node: Node, function: DatasetFunction, calls: int) -> Node:
    """A mapped dataset: on threads if asked for, and if blocks do not go through the function all at once."""
    if calls == 1 or function.by_block:
        return run_of(node, lambda run: mapping.MapRun(run, function))
    return StartNode(lambda step: ParallelMapRun(node.start(step), function, calls, step))


@dataset_op(
    "MapAndBatchDataset",
    f"{INPUT}, {_CALLS}, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
    f"{_F}; preserve_cardinality: bool = false{NOTE}",
)
def _map_and_batch(
    ctx: HostContext,
    node: Node,
    captured: list[Any],
    batch_size: Array,
    calls: Array,
    drop_remainder: Array,
    *,
    f: str,
) -> Node:
    if int(calls) <= 0 and int(calls) != -1:
        raise invalid("num_parallel_calls must be greater than zero.")
    mapped, size = _mapped(node, _function(ctx, f, captured), int(calls)), checked_size(batch_size)
    gather = batches.gathered_or_failed
    return run_of(
        mapped, lambda run: batches.BatchRun(run, size, bool(drop_remainder), batches.added, gather)
    )


@dataset_op(
    "FilterDataset", f"{INPUT}, {_CALLS}", f"predicate: func; Targuments: list(type); {ELEMENTS}{NOTE}"
)
def _filter(ctx: HostContext, node: Node, captured: list[Any], *, predicate: str) -> Node:
    function = _function(ctx, predicate, captured)
    return run_of(node, lambda run: mapping.FilterRun(run, function))


@dataset_op(
    "TakeWhileDataset", f"{INPUT}, {_CALLS}", f"predicate: func; Targuments: list(type); {ELEMENTS}{NOTE}"
)
def _take_while(ctx: HostContext, node: Node, captured: list[Any], *, predicate: str) -> Node:
    function = _function(ctx, predicate, captured)
    return run_of(node, lambda run: mapping.TakeWhileRun(run, function))


@dataset_op("FlatMapDataset", f"{INPUT}, {_CALLS}", _F + NOTE)
def _flat_map(ctx: HostContext, node: Node, captured: list[Any], *, f: str) -> Node:
    function = _function(ctx, f, captured)
    return run_of(node, lambda run: InterleaveRun(run, function, 1, ENDLESS_TURN))


def _interleaved(
    node: Node, function: DatasetFunction, cycle_length: Array, block_length: Array, calls: int = 1
) -> Node:
    cycle, block = int(cycle_length), int(block_length)
    # TensorFlow chooses by the number of CPUs, so that the order differs between machines; here it does not.
    if cycle == -1:
        cycle = 4
    if cycle <= 0:
        raise invalid("cycle_length must be greater than zero.")
    if block <= 0:
        raise invalid("block_length must be greater than zero.")
    ahead = max(_AHEAD_OF_EACH, _AHEAD_OF_ALL // cycle) if calls != 1 and cycle > 1 else 0
    return run_of(node, lambda run: InterleaveRun(run, function, cycle, block, ahead))


@dataset_op("InterleaveDataset", f"{INPUT}, {_CALLS}, cycle_length: int64, block_length: int64", _F + NOTE)
def _interleave(
    ctx: HostContext, node: Node, captured: list[Any], cycle_length: Array, block_length: Array, *, f: str
) -> Node:
    return _interleaved(node, _function(ctx, f, captured), cycle_length, block_length)


@dataset_op(
    "ParallelInterleaveDatasetV2",
    f"{INPUT}, {_CALLS}, cycle_length: int64, block_length: int64, num_parallel_calls: int64",
    f"{_F}; sloppy: bool = false{NOTE}",
)
def _parallel_interleave(
    ctx: HostContext,
    node: Node,
    captured: list[Any],
    cycle_length: Array,
    block_length: Array,
    calls: Array,
    *,
    f: str,
) -> Node:
    if int(calls) <= 0 and int(calls) != -1:
        raise invalid("num_parallel_calls must be greater than zero.")
    return _interleaved(node, _function(ctx, f, captured), cycle_length, block_length, int(calls))


@dataset_op(
    "ScanDataset",
    f"{INPUT}, initial_state: list(Tstate), {_CALLS}",
    f"f: func; Tstate: list(type); Targuments: list(type); {ELEMENTS}; preserve_cardinality: bool = false; "
    f"use_default_device: bool = true{NOTE}",
)
def _scan(ctx: HostContext, node: Node, state: list[Any], captured: list[Any], *, f: str) -> Node:
    function = _function(ctx, f, captured)
    return run_of(node, lambda run: mapping.ScanRun(run, function, state))


@dataset_op(
    "GroupByWindowDataset",
    f"{INPUT}, key_func_other_arguments: list(Tkey_func_other_arguments), "
    "reduce_func_other_arguments: list(Treduce_func_other_arguments), "
    "window_size_func_other_arguments: list(Twindow_size_func_other_arguments)",
    "key_func: func; reduce_func: func; window_size_func: func; Tkey_func_other_arguments: list(type); "
    "Treduce_func_other_arguments: list(type); Twindow_size_func_other_arguments: list(type); "
    f"{ELEMENTS}{NOTE}",
)
def _group_by_window(
    ctx: HostContext,
    node: Node,
    key: list[Any],
    reduce: list[Any],
    size: list[Any],
    *,
    key_func: str,
    reduce_func: str,
    window_size_func: str,
) -> Node:
    given = ((key_func, key), (reduce_func, reduce), (window_size_func, size))
    functions = [_function(ctx, name, values) for name, values in given]
    return run_of(node, lambda run: mapping.GroupByWindowRun(run, *functions))


@op(
    "ReduceDataset",
    f"{INPUT}, initial_state: list(Tstate), {_CALLS} -> components: list(output_types)",
    f"f: func; Tstate: list(type); Targuments: list(type); {ELEMENTS}; use_inter_op_parallelism: bool = true{NOTE}",
    shape=declared_shapes,
    host=True,
    blocks=True,
    stateful=True,
)
def _reduce(
    ctx: HostContext, node: Node, state: list[Any], captured: list[Any], *, f: str
) -> tuple[Any, ...]:
    return tuple(mapping.reduced(node, _function(ctx, f, captured), state, ctx.step))


not_differentiable("ReduceDataset")
