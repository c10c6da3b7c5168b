"""The same computation for many numbers, and Jacobians by it: `tensorflow.python.ops.parallel_for`.

A few iterations are made one after another in the graph, so that anything can be inside, loops and gradients of loops
too; many become a loop.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import export, find, publish
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.gradients import gradients
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.array.basic import group, identity
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.control.branches import vectorized_map
from tensorfleet.ops.control.while_loop import while_loop
from tensorfleet.ops.state.tensor_array import TensorArray

_LOOPS = "python.ops.parallel_for.control_flow_ops"
_GRADIENTS = "python.ops.parallel_for.gradients"
#: iterations that are made one by one
_MAX_UNROLLED_ITERATIONS = 256

publish(vectorized_map, f"{_LOOPS}.vectorized_map")


@export(f"{_LOOPS}.for_loop")
def for_loop(
    loop_fn: Callable, loop_fn_dtypes: Any, iters: Any, parallel_iterations: int | None = None
) -> Any:
    """The results of `loop_fn` for 0, 1, ... `iters - 1`, stacked, by a loop; `loop_fn_dtypes` are their types."""
    kinds = nest.flatten(loop_fn_dtypes)
    missing = [False] * len(kinds)

    def body(i: Tensor, *arrays: TensorArray) -> tuple:
        result = nest.flatten(loop_fn(i))
        if len(result) != len(kinds):
            raise ValueError(
                f"Number of loop_fn_dtypes {len(kinds)} does not match the {len(result)} results of loop_fn."
            )
        missing[:] = [value is None for value in result]
        written = (
            array if value is None else array.write(i, to_tensor(value))
            for array, value in zip(arrays, result, strict=True)
        )
        return (i + 1, *written)

    if parallel_iterations is not None and parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer. Leave it out for the default.")
    count = to_tensor(iters, dtypes.int32)
    arrays = [TensorArray(dtypes.as_dtype(kind).base_dtype, size=count) for kind in kinds]
    _, *filled = while_loop(
        lambda i, *_: apply("Less", i, count),
        body,
        [0, *arrays],
        parallel_iterations=parallel_iterations or 10,
    )
    values = [None if none else array.stack() for array, none in zip(filled, missing, strict=True)]
    return nest.pack_sequence_as(loop_fn_dtypes, values)


class _Needs(Exception):
    """A reduction whose value over all iterations is not known yet; `value` is its operand in this one."""

    def __init__(self, value: Tensor) -> None:
        super().__init__("reduction")
        self.value = value


class PForConfig:
    """Reductions over all iterations for a loop function."""

    def __init__(self, known: list[Tensor]) -> None:
        self._left = list(known)

    def reduce_concat(self, x: Any) -> Tensor:
        """The values of all iterations, stacked."""
        if not self._left:
            raise _Needs(to_tensor(x))
        return self._left.pop(0)

    def reduce_mean(self, x: Any) -> Tensor:
        """Their mean."""
        return apply("Mean", self.reduce_concat(x), [0])

    def reduce_sum(self, x: Any) -> Tensor:
        """Their sum."""
        return apply("Sum", self.reduce_concat(x), [0])


@export(f"{_LOOPS}.pfor")
def pfor(loop_fn: Callable, iters: Any, parallel_iterations: int | None = None) -> Any:
    """The results of `loop_fn` for 0, 1, ... `iters - 1`, stacked. It may take a `pfor_config` to reduce over all."""
    asks = "pfor_config" in inspect.signature(loop_fn).parameters
    if parallel_iterations is not None:
        if parallel_iterations < 1:
            raise ValueError("parallel_iterations must be None or a positive integer")
        if parallel_iterations == 1:
            raise ValueError("Found parallel_iterations == 1. Use for_loop instead.")
        if asks:
            raise ValueError("parallel_iterations currently unsupported with a pfor_config. Leave one out.")
    with name_scope("pfor"):
        if not asks:
            return _stacked(loop_fn, iters)
        known: list[Tensor] = []
        while True:
            try:
                return _stacked(lambda i: loop_fn(i, pfor_config=PForConfig(known)), iters)
            except _Needs:
                known.append(_stacked(functools.partial(_operand, loop_fn, known), iters))


def _operand(loop_fn: Callable, known: list[Tensor], i: Tensor) -> Tensor:
    """The tensor of the first reduction that is not known."""
    try:
        loop_fn(i, pfor_config=PForConfig(known))
    except _Needs as needs:
        return needs.value
    raise ValueError("loop_fn reduces in some iterations only. Let it do so in all.")


def _stacked(loop_fn: Callable, iters: Any) -> Any:
    count = constant_value(iters) if isinstance(iters, Tensor) else iters
    if count is not None and 0 < int(count) <= _MAX_UNROLLED_ITERATIONS:
        return _one_by_one(loop_fn, int(count))
    first = loop_fn(to_tensor(0, dtypes.int32))
    kinds = [None if r is None else to_tensor(r).dtype for r in nest.flatten(first)]
    result = for_loop(loop_fn, [dtypes.float32 if kind is None else kind for kind in kinds], iters)
    if any(value is None and kind is not None for value, kind in zip(result, kinds, strict=True)):
        # A gradient of a loop cannot be taken inside of another.
        if count is None:
            raise ValueError(
                "loop_fn takes the gradient of a loop: the number of iterations has to be known."
            )
        return _one_by_one(loop_fn, int(count))
    for value in result:
        if value is not None and count is not None:
            value.set_shape(TensorShape([int(count)]).concatenate(value.shape[1:]))
    return nest.pack_sequence_as(first, result)


def _one_by_one(loop_fn: Callable, count: int) -> Any:
    results = [loop_fn(to_tensor(i, dtypes.int32)) for i in range(count)]
    flat = [nest.flatten(r) for r in results]
    return nest.pack_sequence_as(results[0], [_joined(values) for values in zip(*flat, strict=True)])


def _joined(values: tuple) -> Any:
    """The results of all iterations as one."""
    first = values[0]
    if first is None:
        return None
    if isinstance(first, Operation):
        return group(*values)
    if isinstance(first, SparseTensor):
        rows = [find("sparse.expand_dims")(v, 0) for v in values]
        return find("sparse.concat")(0, rows)
    return stack([to_tensor(v) for v in values])


def _dense(grads: list) -> list:
    return [to_tensor(g) if isinstance(g, IndexedSlices) else g for g in grads]


def _for_each(loop_fn: Callable, iters: Any, kinds: list, use_pfor: bool, parallel_iterations: Any) -> list:
    if use_pfor:
        return pfor(loop_fn, iters, parallel_iterations=parallel_iterations)
    return for_loop(loop_fn, kinds, iters, parallel_iterations=parallel_iterations)


@export(f"{_GRADIENTS}.jacobian")
def jacobian(output: Any, inputs: Any, use_pfor: bool = True, parallel_iterations: int | None = None) -> Any:
    """The derivatives of each element of a tensor with respect to each of the inputs: the shape of the one, then the other.

    None for an input that the output does not depend on.
    """
    flat = nest.flatten(inputs)
    output = to_tensor(output)
    shape, elements = apply("Shape", output), apply("Reshape", output, [-1])
    count = output.shape.num_elements()

    def row(i: Tensor) -> list:
        return _dense(gradients(gather(elements, i), flat))

    kinds = [x.dtype.base_dtype for x in flat]
    iters = apply("Size", output) if count is None else count
    rows = _for_each(row, iters, kinds, use_pfor, parallel_iterations)
    return nest.pack_sequence_as(
        inputs, [_shaped(r, shape, output.shape, x) for r, x in zip(rows, flat, strict=True)]
    )


def _shaped(rows: Any, shape: Tensor, known: TensorShape, given: Any) -> Any:
    """Rows of derivatives in the shape of what they are of, then that of the input."""
    if rows is None:
        return None
    result = apply("Reshape", rows, apply("ConcatV2", [shape, apply("Shape", rows)[1:]], 0))
    result.set_shape(known.concatenate(given.shape))
    return result


@export(f"{_GRADIENTS}.batch_jacobian")
def batch_jacobian(
    output: Any, inp: Any, use_pfor: bool = True, parallel_iterations: int | None = None
) -> Any:
    """The Jacobian of each row of the output with respect to the same row of the input; None if there is no way."""
    output, inp = to_tensor(output), to_tensor(inp)
    if not output.shape[:1].is_compatible_with(inp.shape[:1]):
        raise ValueError(
            f"Need first dimension of output shape ({output.shape}) and inp shape ({inp.shape}) to match."
        )
    batch, given = apply("Shape", output), apply("Shape", inp)
    with control_dependencies([find("assert_equal")(batch[0], given[0])]):
        rows = apply("Reshape", identity(output), apply("Pack", [batch[0], -1]))
    count = output.shape[1:].num_elements()

    def row(i: Tensor) -> Any:
        return _dense(gradients(gather(rows, i, axis=1), inp))

    iters = apply("Shape", rows)[1] if count is None else count
    (outcome,) = _for_each(row, iters, [inp.dtype.base_dtype], use_pfor, parallel_iterations)
    if outcome is None:
        return None
    rest = apply("Shape", outcome)[2:]
    swapped = find("transpose")(
        apply("Reshape", outcome, apply("ConcatV2", [apply("Shape", outcome)[:2], [-1]], 0)), [1, 0, 2]
    )
    result = apply("Reshape", swapped, apply("ConcatV2", [batch, rest], 0))
    result.set_shape(output.shape.concatenate(inp.shape[1:]))
    return result
