"""The operations that make datasets by calling functions, and the one that reduces a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorfleet.api.data import batches, mapping
from tensorfleet.api.data.calls import Function
from tensorfleet.api.data.dataset_ops import INPUT, IS, NOTE, checked_size, dataset_op, invalid, run_of
from tensorfleet.api.data.interleaving import ONLY, Interleave
from tensorfleet.api.data.nodes import From, Node
from tensorfleet.api.data.parallel import ParallelMap
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.functions import find_function
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op

_CALLS = "other_arguments: list(Targuments)"
_F = f"f: func; Targuments: list(type); {IS}"
_MAPS = "use_inter_op_parallelism: bool = true; preserve_cardinality: bool = false"
# How many elements of each open dataset a parallel interleave fetches before their turn comes, at most; and of few
# datasets together, since each time that a thread wakes costs as much as some elements.
_AHEAD, _AHEAD_TOGETHER = 16, 128


def _function(ctx: Any, name: Any, captured: Sequence[Any]) -> Function:
    return Function(find_function(ctx.op.graph, name), captured)


_GENERATES = (
    "init_func_other_args: list(Tinit_func_args), next_func_other_args: list(Tnext_func_args), "
    "finalize_func_other_args: list(Tfinalize_func_args)"
)


@dataset_op(
    "GeneratorDataset",
    _GENERATES,
    "init_func: func; next_func: func; finalize_func: func; Tinit_func_args: list(type); "
    f"Tnext_func_args: list(type); Tfinalize_func_args: list(type); {IS}{NOTE}",
    stateful=True,
)
def _generator(
    ctx: Any, begin: list, after: list, finish: list, *, init_func: Any, next_func: Any, finalize_func: Any
) -> Node:
    given = ((init_func, begin), (next_func, after), (finalize_func, finish))
    functions = [_function(ctx, name, values) for name, values in given]
    return From(lambda step: mapping.Generate(*functions))


@dataset_op("MapDataset", f"{INPUT}, {_CALLS}", f"{_F}; {_MAPS}; force_synchronous: bool = false{NOTE}")
def _map(ctx: Any, node: Node, captured: list, *, f: Any) -> Node:
    function = _function(ctx, f, captured)
    return run_of(node, lambda run: mapping.Map(run, function))


@dataset_op(
    "ParallelMapDataset",
    f"{INPUT}, {_CALLS}, num_parallel_calls: int32",
    f"{_F}; use_inter_op_parallelism: bool = true; sloppy: bool = false; preserve_cardinality: bool = false{NOTE}",
)
def _parallel_map(ctx: Any, node: Node, captured: list, calls: Any, *, f: Any) -> Node:
    if int(calls) <= 0 and int(calls) != -1:
        raise invalid("num_parallel_calls must be greater than zero.")
    return _mapped(node, _function(ctx, f, captured), int(calls))


def _mapped(node: Node, function: Function, calls: int) -> Node:
    """On threads if that is wanted, and if blocks do not go through the function all at once."""
    if calls == 1 or function.by_block:
        return run_of(node, lambda run: mapping.Map(run, function))
    return From(lambda step: ParallelMap(node.start(step), function, calls, step))


@dataset_op(
    "MapAndBatchDataset",
    f"{INPUT}, {_CALLS}, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
    f"{_F}; preserve_cardinality: bool = false{NOTE}",
)
def _map_and_batch(
    ctx: Any, node: Node, captured: list, batch_size: Any, calls: Any, drop_remainder: Any, *, f: Any
) -> Node:
    if int(calls) <= 0 and int(calls) != -1:
        raise invalid("num_parallel_calls must be greater than zero.")
    mapped, size = _mapped(node, _function(ctx, f, captured), int(calls)), checked_size(batch_size)
    gather = batches.gathered_or_failed
    return run_of(mapped, lambda run: batches.Batch(run, size, bool(drop_remainder), batches.added, gather))


@dataset_op("FilterDataset", f"{INPUT}, {_CALLS}", f"predicate: func; Targuments: list(type); {IS}{NOTE}")
def _filter(ctx: Any, node: Node, captured: list, *, predicate: Any) -> Node:
    function = _function(ctx, predicate, captured)
    return run_of(node, lambda run: mapping.Filter(run, function))


@dataset_op("TakeWhileDataset", f"{INPUT}, {_CALLS}", f"predicate: func; Targuments: list(type); {IS}{NOTE}")
def _take_while(ctx: Any, node: Node, captured: list, *, predicate: Any) -> Node:
    function = _function(ctx, predicate, captured)
    return run_of(node, lambda run: mapping.TakeWhile(run, function))


@dataset_op("FlatMapDataset", f"{INPUT}, {_CALLS}", _F + NOTE)
def _flat_map(ctx: Any, node: Node, captured: list, *, f: Any) -> Node:
    function = _function(ctx, f, captured)
    return run_of(node, lambda run: Interleave(run, function, 1, ONLY))


def _interleaved(
    node: Node, function: Function, cycle_length: Any, block_length: Any, calls: int = 1
) -> Node:
    cycle, block = int(cycle_length), int(block_length)
    if cycle == -1:
        cycle = 4
    if cycle <= 0:
        raise invalid("cycle_length must be greater than zero.")
    if block <= 0:
        raise invalid("block_length must be greater than zero.")
    ahead = max(_AHEAD, _AHEAD_TOGETHER // cycle) if calls != 1 and cycle > 1 else 0
    return run_of(node, lambda run: Interleave(run, function, cycle, block, ahead))


@dataset_op("InterleaveDataset", f"{INPUT}, {_CALLS}, cycle_length: int64, block_length: int64", _F + NOTE)
def _interleave(
    ctx: Any, node: Node, captured: list, cycle_length: Any, block_length: Any, *, f: Any
) -> Node:
    return _interleaved(node, _function(ctx, f, captured), cycle_length, block_length)


@dataset_op(
    "ParallelInterleaveDatasetV2",
    f"{INPUT}, {_CALLS}, cycle_length: int64, block_length: int64, num_parallel_calls: int64",
    f"{_F}; sloppy: bool = false{NOTE}",
)
def _parallel_interleave(
    ctx: Any, node: Node, captured: list, cycle_length: Any, block_length: Any, calls: Any, *, f: Any
) -> Node:
    if int(calls) <= 0 and int(calls) != -1:
        raise invalid("num_parallel_calls must be greater than zero.")
    return _interleaved(node, _function(ctx, f, captured), cycle_length, block_length, int(calls))


@dataset_op(
    "ScanDataset",
    f"{INPUT}, initial_state: list(Tstate), {_CALLS}",
    f"f: func; Tstate: list(type); Targuments: list(type); {IS}; preserve_cardinality: bool = false; "
    f"use_default_device: bool = true{NOTE}",
)
def _scan(ctx: Any, node: Node, state: list, captured: list, *, f: Any) -> Node:
    function = _function(ctx, f, captured)
    return run_of(node, lambda run: mapping.Scan(run, function, state))


@dataset_op(
    "GroupByWindowDataset",
    f"{INPUT}, key_func_other_arguments: list(Tkey_func_other_arguments), "
    "reduce_func_other_arguments: list(Treduce_func_other_arguments), "
    "window_size_func_other_arguments: list(Twindow_size_func_other_arguments)",
    "key_func: func; reduce_func: func; window_size_func: func; Tkey_func_other_arguments: list(type); "
    "Treduce_func_other_arguments: list(type); Twindow_size_func_other_arguments: list(type); "
    f"{IS}{NOTE}",
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
    return run_of(node, lambda run: mapping.GroupByWindow(run, *functions))


def _declared_shapes(op: Operation) -> list[TensorShape]:
    return list(op._attrs["output_shapes"])


@op(
    "ReduceDataset",
    f"{INPUT}, initial_state: list(Tstate), {_CALLS} -> components: list(output_types)",
    f"f: func; Tstate: list(type); Targuments: list(type); {IS}; use_inter_op_parallelism: bool = true{NOTE}",
    shape=_declared_shapes,
    host=True,
    blocks=True,
    stateful=True,
)
def _reduce(ctx: Any, node: Node, state: list, captured: list, *, f: Any) -> tuple:
    return tuple(mapping.reduced(node, _function(ctx, f, captured), state, ctx.step))


not_differentiable("ReduceDataset")
