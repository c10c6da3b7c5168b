"""Questions about tensors, graphs and modes that are answered while a graph is built."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.custom_gradient import custom_gradient
from tensorfleet.graph.indexed_slices import CompositeTensor, IndexedSlices
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import (
    control_dependencies,
    get_default_graph,
    graph_stack,
    outermost_graph,
)
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.common import same_as_input, scalar
from tensorfleet.ops.samples import case


@export("is_tensor", "contrib.framework.is_tensor")
def is_tensor(x: TensorLike) -> bool:
    """Whether something is a tensor, a sparse tensor, a variable or IndexedSlices."""
    return isinstance(x, (Tensor, CompositeTensor)) or hasattr(x, "_as_graph_element")


@export("get_static_value")
def get_static_value(tensor: TensorLike, partial: bool = False) -> Any:
    """The value of a tensor that is known without running anything, else None.

    What is no tensor is its own value. With `partial`, a stack of which only some parts are known is an array of
    those, and None for the others.
    """
    if not isinstance(tensor, Tensor):
        return None if is_tensor(tensor) else tensor
    result = constant_value(tensor)
    if result is not None or not partial:
        return result
    if tensor.op.type != "Pack" or tensor.op._attrs["axis"] != 0:
        return None
    result = np.empty(len(tensor.op.inputs), object)
    for i, part in enumerate(tensor.op.inputs):
        result[i] = get_static_value(part, partial)
    return result


@export("convert_to_tensor_or_indexed_slices")
def convert_to_tensor_or_indexed_slices(
    value: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> IndexedSlices | Tensor:
    """IndexedSlices as they are, anything else as a tensor."""
    if isinstance(value, IndexedSlices):
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for Tensor with dtype "
                f"{value.dtype.name}: {value}"
            )
        return value
    return to_tensor(value, dtype, name=name)


@export("executing_eagerly")
def executing_eagerly() -> bool:
    """False: everything is a graph."""
    return False


@export("control_flow_v2_enabled")
def control_flow_v2_enabled() -> bool:
    """False: loops and conditions are made of TensorFlow 1's own ops."""
    return False


def _as_it_is(name: str, what: str) -> None:
    def already() -> None: ...

    already.__name__ = already.__qualname__ = name
    already.__doc__ = f"Nothing to do: {what}."
    export(name)(already)


_as_it_is("disable_eager_execution", "everything is a graph")
_as_it_is("disable_v2_behavior", "everything behaves as in TensorFlow 1")
_as_it_is("disable_v2_tensorshape", "shapes hold Dimensions, as in TensorFlow 1")
_as_it_is("disable_tensor_equality", "`==` compares tensors by identity, as in TensorFlow 1")
_as_it_is("disable_control_flow_v2", "loops and conditions are those of TensorFlow 1")


@export("init_scope")
@contextmanager
def init_scope() -> Iterator[None]:
    """Operations made inside are outside of functions being traced, and wait for no dependencies around the block.

    Inside the body of a function they go to the graph around it, under the same name scope.
    """
    inner = get_default_graph()
    outer = outermost_graph()
    if outer is inner:
        with control_dependencies(None):
            yield
        return
    scope = inner.get_name_scope()
    named = next((g._local().devices for g in reversed(graph_stack()) if g._local().devices), [])
    state = outer._local()
    with outer.as_default(), outer.name_scope(f"{scope}/" if scope else None), control_dependencies(None):
        before, state.devices = state.devices, list(named) or state.devices
        try:
            yield
        finally:
            state.devices = before


@export("grad_pass_through")
def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with a gradient of one: what comes back passes through as it is."""

    @functools.wraps(f)
    @custom_gradient
    def call(*args: Any) -> Any:
        def gradient(*grads: Any, variables: Any = ()) -> Tensor | tuple[Tensor, list[None]]:
            given = grads if len(grads) > 1 else grads[0]
            return (given, [None] * len(variables)) if variables else given

        return f(*args), gradient

    return call


@op("GuaranteeConst", "input: T -> output: T", "T: type", shape=same_as_input, examples=[case(np.float32(1))])
def _guarantee_const(xp: ArrayModule, x: Array) -> Array:
    return x


not_differentiable("GuaranteeConst")


@export("guarantee_const")
def guarantee_const(input: TensorLike, name: str | None = None) -> Tensor:
    """The input, with the promise that its value never changes."""
    return apply("GuaranteeConst", input, name=name)


@op("Timestamp", "-> ts: double", shape=scalar, host=True, stateful=True)
def _timestamp(ctx: HostContext) -> np.float64:
    return np.float64(time.time())


@export("timestamp")
def timestamp(name: str | None = None) -> Tensor:
    """Seconds since 1970, when it is run."""
    return apply("Timestamp", name=name)


@export("add_check_numerics_ops")
def add_check_numerics_ops() -> Operation:
    """An operation that fails when any floating-point tensor made so far holds a NaN or an infinity."""
    checks: list[Tensor] = []
    for operation in get_default_graph().get_operations():
        for output in operation.outputs:
            if output.dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
                if operation._get_control_flow_context() is not None:
                    raise ValueError(
                        "`tf.add_check_numerics_ops() is not compatible with TensorFlow control flow operations "
                        "such as `tf.cond()` or `tf.while_loop()`."
                    )
                with control_dependencies(checks[-1:]):
                    checks.append(
                        apply("CheckNumerics", output, message=f"{operation.name}:{output.value_index}")
                    )
    return group(*checks[-1:])
