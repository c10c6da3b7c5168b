"""`tf.contrib.nccl` and `tf.contrib.all_reduce`: sums over the devices of one graph.

Every form gives each device the same sum; which way the parts travel is left to the runtime.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with, device
from tensorfleet.ops.array.basic import identity


def _reduced(tensors: Sequence[Tensor], reduce: Callable[[list], Tensor]) -> list[Tensor]:
    """The result of all tensors, once on the device of each."""
    if not tensors:
        raise ValueError("Must pass >0 tensors to all reduce operations")
    with colocate_with(tensors[0].op):
        total = reduce(list(tensors))
    result = []
    for tensor in tensors:
        with colocate_with(tensor.op):
            result.append(identity(total))
    return result


def _folded(red_op: Callable, un_op: Callable | None = None) -> Callable[[list], Tensor]:
    """A reduction that combines two tensors at a time, and applies `un_op` to the result."""

    def fold(tensors: list) -> Tensor:
        total = functools.reduce(red_op, tensors)
        return un_op(total) if un_op else total

    return fold


def _sum(tensors: list) -> Tensor:
    return apply("AddN", tensors)


def _in_nccl(name: str) -> tuple[str, str]:
    return f"contrib.nccl.{name}", f"contrib.nccl.python.ops.nccl_ops.{name}"


def _places(name: str) -> tuple[str, str]:
    return f"contrib.all_reduce.{name}", f"contrib.all_reduce.python.all_reduce.{name}"


@export(*_in_nccl("all_sum"))
def all_sum(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The sum of the tensors, on the device of each."""
    return _reduced(tensors, _sum)


@export(*_in_nccl("all_prod"))
def all_prod(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The product of the tensors, on the device of each."""
    return _reduced(tensors, _folded(partial(apply_any, "Mul")))


@export(*_in_nccl("all_min"))
def all_min(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The least of the tensors' elements, on the device of each."""
    return _reduced(tensors, _folded(partial(apply_any, "Minimum")))


@export(*_in_nccl("all_max"))
def all_max(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The greatest of the tensors' elements, on the device of each."""
    return _reduced(tensors, _folded(partial(apply_any, "Maximum")))


@export(*_in_nccl("reduce_sum"))
def reduce_sum(tensors: Sequence[Tensor]) -> Tensor:
    """The sum of the tensors, where the operation is placed."""
    return _sum(list(tensors))


@export(*_in_nccl("broadcast"))
def broadcast(tensor: Tensor) -> Tensor:
    """The tensor; it moves to the devices that use it."""
    return identity(tensor)


def _with(input_tensors: Sequence[Tensor], red_op: Callable, un_op: Callable | None) -> list[Tensor]:
    return _reduced(input_tensors, _folded(red_op, un_op))


@export(*_places("build_ring_all_reduce"))
def build_ring_all_reduce(
    input_tensors: Sequence[Tensor],
    num_workers: int,
    num_subchunks: int,
    gpu_perm: Any,
    red_op: Callable,
    un_op: Callable | None = None,
) -> list[Tensor]:
    """`red_op` over all tensors, then `un_op`, on the device of each."""
    if len(input_tensors) < 2:
        raise ValueError("input_tensors must be length 2 or longer")
    return _with(input_tensors, red_op, un_op)


@export(*_places("build_recursive_hd_all_reduce"))
def build_recursive_hd_all_reduce(
    input_tensors: Sequence[Tensor], red_op: Callable, un_op: Callable | None = None
) -> list[Tensor]:
    """`red_op` over all tensors, then `un_op`, on the device of each; as many tensors as a power of two."""
    count = len(input_tensors)
    if count & (count - 1):
        raise ValueError("input_tensors must be a power of 2 in length")
    return _with(input_tensors, red_op, un_op)


@export(*_places("build_shuffle_all_reduce"))
def build_shuffle_all_reduce(
    input_tensors: Sequence[Tensor],
    gather_devices: Sequence[str],
    red_op: Callable,
    un_op: Callable | None = None,
) -> list[Tensor]:
    """`red_op` over all tensors, then `un_op`, computed on the first of `gather_devices`."""
    if len(input_tensors) < 2:
        raise ValueError("input_tensors must be length 2 or longer")

    def reduce(tensors: list) -> Tensor:
        with device(None), device(gather_devices[0]):
            return _folded(red_op, un_op)(tensors)

    return _reduced(input_tensors, reduce)


def _by_worker(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    def task(tensor: Tensor) -> str:
        return tensor.device.partition("/device:")[0]

    return [list(group) for _, group in itertools.groupby(tensors, task)]


def _two_levels(input_tensors: Sequence[Tensor], red_op: Callable, un_op: Callable | None) -> list[Tensor]:
    """First the sum of each task, then `red_op` over the tasks."""
    groups = _by_worker(input_tensors)
    firsts = _with([all_sum(group)[0] for group in groups], red_op, un_op)
    result = []
    for group, first in zip(groups, firsts, strict=True):
        for tensor in group:
            with colocate_with(tensor.op):
                result.append(identity(first))
    return result


@export(*_places("build_nccl_all_reduce"))
def build_nccl_all_reduce(
    input_tensors: Sequence[Tensor], red_op: Callable, un_op: Callable | None = None
) -> list[Tensor]:
    """The sum of the tensors, then `un_op`, on the device of each."""
    return _reduced(input_tensors, lambda tensors: un_op(_sum(tensors)) if un_op else _sum(tensors))


@export(*_places("build_nccl_then_ring"))
def build_nccl_then_ring(
    input_tensors: Sequence[Tensor], subdiv: int, red_op: Callable, un_op: Callable | None = None
) -> list[Tensor]:
    """The sum of each task's tensors, then `red_op` over the tasks."""
    return _two_levels(input_tensors, red_op, un_op)


@export(*_places("build_nccl_then_recursive_hd"))
def build_nccl_then_recursive_hd(
    input_tensors: Sequence[Tensor], red_op: Callable, un_op: Callable | None = None
) -> list[Tensor]:
    """The sum of each task's tensors, then `red_op` over the tasks."""
    return _two_levels(input_tensors, red_op, un_op)


@export(*_places("build_nccl_then_shuffle"))
def build_nccl_then_shuffle(
    input_tensors: Sequence[Tensor],
    gather_devices: Sequence[str],
    nccl_red_op: Callable,
    shuffle_red_op: Callable,
    un_op: Callable | None = None,
) -> list[Tensor]:
    """The sum of each task's tensors, then `shuffle_red_op` over the tasks."""
    return _two_levels(input_tensors, shuffle_red_op, un_op)


@export(*_places("build_shuffle_then_shuffle"))
def build_shuffle_then_shuffle(
    input_tensors: Sequence[Tensor],
    first_gather_devices: Sequence[str],
    second_gather_devices: Sequence[str],
    red_op: Callable,
    un_op: Callable | None = None,
) -> list[Tensor]:
    """`red_op` over the tensors of each task, then over the tasks."""
    groups = _by_worker(input_tensors)
    firsts = [
        build_shuffle_all_reduce(g, first_gather_devices, red_op)[0] if len(g) > 1 else g[0] for g in groups
    ]
    totals = _with(firsts, red_op, un_op)
    return [identity(total) for group, total in zip(groups, totals, strict=True) for _ in group]
