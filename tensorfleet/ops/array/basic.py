"""Constants, placeholders, identities and the ops that only order or guard others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export, publish
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list, apply_op, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import colocate_with, control_dependencies, get_default_graph, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.kernels import lane_kernels
from tensorfleet.ops.common import UNKNOWN, same_as_input
from tensorfleet.ops.samples import case

publish(constant, "constant")

_SAMPLES = [
    case(np.array([[1.5, -2.0]])),
    case(np.array(["a", "b"], object)),
    case(np.float32(3.0)),
    case(np.zeros((0, 2), np.int32)),
]


@op(
    "Const",
    "-> output: dtype",
    "value: tensor; dtype: type",
    shape=lambda op: TensorShape._of(op._attrs["value"].shape),
)
def _const(xp: ArrayModule, *, value: Array) -> Array:
    return value


not_differentiable("Const")


def _fed_only(xp: ArrayModule, *, op: Operation) -> NoReturn:
    dtype, shape = op._attrs["dtype"], op._attrs["shape"]
    known = f" and shape {_bracketed(shape)}" if shape._d is not None else ""
    raise errors.InvalidArgumentError(
        None,
        op,
        f"You must feed a value for placeholder tensor '{op.name}' with dtype {c_name(dtype)}{known}. "
        "Add it to the feed_dict of this run.",
    )


def c_name(dtype: dtypes.DType) -> str:
    """A type as messages from the kernels call it."""
    return {"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name)


def _bracketed(shape: TensorShape) -> str:
    return "[" + ",".join("?" if d is None else str(d) for d in shape.as_list()) + "]"


@op(
    "Placeholder",
    "-> output: dtype",
    "dtype: type; shape: shape = unknown",
    shape=lambda op: op._attrs["shape"],
)
def _placeholder(xp: ArrayModule, *, op: Operation) -> NoReturn:
    _fed_only(xp, op=op)


not_differentiable("Placeholder")


@export("placeholder")
def placeholder(dtype: DTypeLike, shape: ShapeLike = None, name: str | None = None) -> Tensor:
    """A tensor whose value is given in the `feed_dict` of each run."""
    return apply("Placeholder", dtype=dtype, shape=as_shape(shape), name=name)


def _default_shape(op: Operation) -> TensorShape:
    op._attrs["shape"].assert_is_compatible_with(op._inputs[0].shape)
    result: TensorShape = op._attrs["shape"]
    return result


@op(
    "PlaceholderWithDefault",
    "input: dtype -> output: dtype",
    "dtype: type; shape: shape",
    shape=_default_shape,
    moves="input",
)
def _placeholder_with_default(xp: ArrayModule, x: Array) -> Array:
    return x


@gradient("PlaceholderWithDefault")
def _pass_through(op: Operation, dy: IndexedSlices | Tensor) -> IndexedSlices | Tensor:
    return dy


@export("placeholder_with_default")
def placeholder_with_default(input: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """A tensor that has the value of `input` unless it is fed."""
    return apply("PlaceholderWithDefault", input, shape=as_shape(shape), name=name)


@op(
    "Identity",
    "input: T -> output: T",
    "T: type",
    shape=same_as_input,
    moves="input",
    joined=lane_kernels.unchanged,
    examples=_SAMPLES,
)
def _identity(xp: ArrayModule, x: Array) -> Array:
    return x


gradient("Identity")(_pass_through)


@export("identity")
def identity(input: TensorLike, name: str | None = None) -> Any:
    """The same value under a new name; a snapshot when `input` is a variable."""
    if isinstance(input, SparseTensor):
        return SparseTensor(*[identity(t) for t in (input.indices, input.values, input.dense_shape)])
    if isinstance(input, IndexedSlices):
        shape = None if input.dense_shape is None else identity(input.dense_shape)
        return IndexedSlices(identity(input.values, name), identity(input.indices), shape)
    return apply("Identity", input, name=name)


@op("StopGradient", "input: T -> output: T", "T: type", shape=same_as_input, moves="input", examples=_SAMPLES)
def _stop_gradient(xp: ArrayModule, x: Array) -> Array:
    return x


@op(
    "PreventGradient",
    "input: T -> output: T",
    "T: type; message: string = ''",
    shape=same_as_input,
    moves="input",
    examples=[case(np.array([1.5]), grad=False)],
)
def _prevent_gradient(xp: ArrayModule, x: Array) -> Array:
    return x


not_differentiable("StopGradient")


@gradient("PreventGradient")
def _refuse(op: Operation, dy: Tensor) -> None:
    raise LookupError(f"Gradient explicitly disabled. Reason: {op.get_attr('message').decode()!r}")


@export("stop_gradient")
def stop_gradient(input: TensorLike, name: str | None = None) -> Tensor:
    """The same value, through which no gradient flows."""
    return apply("StopGradient", input, name=name)


@op("Snapshot", "input: T -> output: T", "T: type", shape=same_as_input, moves="input", examples=_SAMPLES)
def _snapshot(xp: ArrayModule, x: Array) -> Array:
    return x


@op(
    "IdentityN",
    "input: list(T) -> output: list(T)",
    "T: list(type)",
    shape=lambda op: [t.shape for t in op._inputs],
    examples=[case([np.array([1.5]), np.array(2, np.int32)])],
)
def _identity_n(xp: ArrayModule, values: list[Array]) -> tuple[Array, ...]:
    return tuple(values)


@gradient("IdentityN")
def _identity_n_grad(op: Operation, *grads: Any) -> tuple[Tensor, None]:
    return grads


@export("identity_n")
def identity_n(input: Iterable[TensorLike], name: str | None = None) -> list[Tensor]:
    """Each of the tensors under a new name, by one operation."""
    return apply_list("IdentityN", list(input), name=name)


@op("NoOp", "")
def _no_op(xp: ArrayModule) -> tuple[()]:
    return ()


@export("no_op")
def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing; something to hang control dependencies on."""
    return apply_op("NoOp", name=name)


@export("group")
def group(*inputs: Any, **kwargs: Any) -> Operation:
    """One operation that finishes when all `inputs` have."""
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {', '.join(kwargs)}")
    flat: list[Any] = []
    for item in inputs:
        flat += _flat(item)
    with name_scope(name, "group_deps", flat or None) as scope:
        if not flat:
            return no_op(name=scope)
        by_device: dict[str, list[Any]] = {}
        for item in flat:
            if not hasattr(item, "device"):
                raise TypeError(
                    f"Expected tf.group() expected Tensor objects not None or {type(item).__name__}: {item!r}"
                )
            by_device.setdefault(item.device, []).append(item)
        if len(by_device) == 1:
            return _group_on(next(iter(by_device)), flat, scope)
        # One node per device, so that a step sends one signal between devices, not one per op.
        parts = [_group_on(device, items, None) for device, items in sorted(by_device.items())]
        with control_dependencies(parts):
            return no_op(name=scope)


def _group_on(device: str, items: list[Any], name: str | None) -> Operation:
    graph = get_default_graph()
    with graph.control_dependencies(items):
        if not device:
            return no_op(name=name)
        with graph.device(None), graph.device(device):
            return no_op(name=name)


def _flat(item: Any) -> list[Any]:
    if isinstance(item, dict):
        return [x for key in sorted(item) for x in _flat(item[key])]
    if isinstance(item, (list, tuple)):
        return [x for part in item for x in _flat(part)]
    if isinstance(item, SparseTensor):
        return [item.indices, item.values, item.dense_shape]
    return [item]


@export("tuple")
def tuple_(
    tensors: Sequence[Any],
    name: str | None = None,
    control_inputs: Sequence[Operation | Tensor] | None = None,
) -> list[Any]:
    """The same tensors, each available only when all of them are."""
    with name_scope(name, "tuple", list(tensors)):
        gates = [t.op for t in tensors if t is not None]
        for c in control_inputs or ():
            op = getattr(c, "op", c)
            if not isinstance(op, Operation):
                raise TypeError(f"Control input must be Operation or Tensor: {c}")
            gates.append(op)
        # In the order they were made, as in TensorFlow: it is part of a GraphDef.
        gates = sorted(set(gates), key=lambda o: o._id)
        if not gates:
            raise ValueError(f"Must have at least one Tensor: {tensors}")
        gate = group(*gates)
        return [None if t is None else with_dependencies([gate], t) for t in tensors]


@export("python.ops.control_flow_ops.with_dependencies")
def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: str | None = None) -> Any:
    """`output_tensor`, where it is, available only after the dependencies have run."""
    given = output_tensor if isinstance(output_tensor, (IndexedSlices, SparseTensor)) else None
    if given is None and not hasattr(output_tensor, "op"):
        output_tensor = to_tensor(output_tensor)
    with name_scope(name, "control_dependency", [*dependencies, output_tensor]) as scope:
        with colocate_with(output_tensor.op), control_dependencies(dependencies):
            if isinstance(given, IndexedSlices):
                return IndexedSlices(identity(given.values, scope), given.indices, given.dense_shape)
            if given is not None:
                return identity(given)
            return identity(output_tensor, name=scope)


def unknown_like(op: Operation) -> list[TensorShape]:
    """Unknown shapes for all outputs."""
    return [UNKNOWN] * len(op._outputs)
