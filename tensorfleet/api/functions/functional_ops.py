"""`tensorflow.python.ops.functional_ops`: branches and loops whose parts are functions."""

from __future__ import annotations

from collections.abc import Sequence

from tensorfleet.api.functions.defun import DefinedFunction, Defun
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.platform.compat import as_text
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply_op
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.functions import find_function
from tensorfleet.graph.gradients import gradients
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import device, get_default_graph
from tensorfleet.ops.control.function_calls import kernels_of
from tensorfleet.ops.control.functional_nodes import named_body


@export("python.ops.functional_ops.If")
def If(
    cond: TensorLike,
    inputs: Sequence[TensorLike],
    then_branch: DefinedFunction,
    else_branch: DefinedFunction,
    name: str | None = None,
) -> list[Tensor]:
    """One of two functions of the inputs, as a condition says when it runs."""
    tensors = [to_tensor(x) for x in inputs]
    op = apply_op(
        "If",
        cond,
        tensors,
        then_branch=named_body(then_branch, tensors),
        else_branch=named_body(else_branch, tensors),
        Tout=[t.dtype.base_dtype for t in then_branch._body([x.dtype.base_dtype for x in tensors]).outputs],
        name=name,
    )
    return op.outputs


@export("python.ops.functional_ops.While")
def While(
    input_: Sequence[TensorLike],
    cond: DefinedFunction,
    body: DefinedFunction,
    name: str | None = None,
    hostmem: Sequence[int] | None = None,
) -> list[Tensor]:
    """Applies one function to values as long as another says so of them.

    The captured tensors of the first function stay the same in all rounds.
    """
    tensors = [to_tensor(x) for x in input_]
    test, step = named_body(cond, tensors), body._body([t.dtype.base_dtype for t in tensors])
    # Refuses a body with effects now: inside the op they would have no order.
    kernels_of(step)
    op = apply_op("While", [*tensors, *step.captures], cond=test, body=step.name, name=name)
    return op.outputs[: len(tensors)]


@export("python.ops.functional_ops.For")
def For(
    start: TensorLike,
    limit: TensorLike,
    delta: TensorLike,
    inputs: Sequence[TensorLike],
    body: DefinedFunction,
    name: str | None = None,
    hostmem: Sequence[int] | None = None,
    rewrite_with_while: bool | None = None,
) -> list[Tensor]:
    """Applies a function of a counter and values to the values, once for each number of a range.

    The captured tensors of the function stay the same in all rounds.
    """
    if rewrite_with_while:
        return _for_as_while(start, limit, delta, inputs, body, name)
    tensors = [to_tensor(x) for x in inputs]
    counted = body._body([dtypes.int32, *(t.dtype.base_dtype for t in tensors)])
    kernels_of(counted)
    around = list(counted.captures)
    op = apply_op("For", start, limit, delta, [*tensors, *around], body=counted.name, name=name)
    return op.outputs[: len(tensors)]


def _for_as_while(
    start: TensorLike,
    limit: TensorLike,
    delta: TensorLike,
    inputs: Sequence[TensorLike],
    body: DefinedFunction,
    name: str | None,
) -> list[Tensor]:
    """The loop over a range as one that counts the rounds itself."""
    tensors = [to_tensor(x) for x in inputs]
    kinds = [dtypes.int32] * 3 + [t.dtype.base_dtype for t in tensors]
    known = body._body([dtypes.int32, *kinds[3:]])

    def goes_on(at: Tensor, limit: Tensor, delta: Tensor, *values: Tensor) -> Tensor:
        return (delta > 0) & (at < limit) | (delta < 0) & (at > limit)

    def one_round(at: Tensor, limit: Tensor, delta: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        return (at + delta, limit, delta, *_listed(body(at, *values)))

    test = Defun(*kinds, func_name=f"{known.name}_Cond")(goes_on)
    step = Defun(*kinds, func_name=f"{known.name}_Body")(one_round)
    counts = [to_tensor(x, dtypes.int32) for x in (start, limit, delta)]
    return While([*counts, *tensors], test, step, name=name)[3:]


def _listed(results: Operation | Tensor | Sequence[Tensor]) -> list[Tensor]:
    if isinstance(results, Operation):
        return []
    return [results] if isinstance(results, Tensor) else list(results)


@export("python.ops.functional_ops.remote_call")
def remote_call(
    target: Tensor | str,
    args: Sequence[TensorLike],
    Tout: Sequence[DTypeLike] | None,
    f: DefinedFunction,
    name: str | None = None,
) -> list[Tensor]:
    """The results of a function, computed on a device, which may be named by a constant."""
    if isinstance(target, Tensor):
        named = constant_value(target)
        if named is None:
            raise ValueError(
                f"The target of a remote call must be known when the graph is built, got {target}. "
                "Give the device as a string or a constant."
            )
        target = as_text(named.item())
    with device(target):
        return _listed(f(*args, name=name or "RemoteCall"))


@export("python.ops.functional_ops.partitioned_call")
def partitioned_call(
    args: Sequence[TensorLike], f: DefinedFunction, tout: Sequence[DTypeLike] | None = None, **_: object
) -> Operation | list[Tensor]:
    """The results of a function, or its operation when it has none; its captured tensors may be among `args`."""
    own = [a for a in args if not any(a is c for c in f.captured_inputs)]
    outputs = f(*own, name="PartitionedCall")
    return outputs if isinstance(outputs, Operation) else _listed(outputs)


@export("python.ops.functional_ops.symbolic_gradient")
def symbolic_gradient(
    input: Sequence[TensorLike],
    Tout: Sequence[DTypeLike] | None,
    f: DefinedFunction | str,
    name: str | None = None,
) -> list[Tensor]:
    """The gradients of a function: `input` is its arguments, then the gradients of its results."""
    if isinstance(f, str):
        body = find_function(get_default_graph(), f)
        count, types = len(body.inputs), [t.dtype.base_dtype for t in body.outputs]
        args = [to_tensor(x) for x in input[:count]]
        results = apply_op("PartitionedCall", [*args, *body.captures], f=f, Tout=types).outputs
    else:
        count = len(f.declared_input_types)
        args = [to_tensor(x) for x in input[:count]]
        results = _listed(f(*args))
    return gradients(results, args, [to_tensor(x) for x in input[count:]])


@export("python.ops.functional_ops.Gradient")
def Gradient(inputs: Sequence[TensorLike], f: DefinedFunction, name: str | None = None) -> list[Tensor]:
    """The gradients of a function with respect to its arguments, as `symbolic_gradient` gives them."""
    return symbolic_gradient(inputs, f.declared_input_types, f, name)
