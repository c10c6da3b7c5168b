"""Every op as a function: `tf.raw_ops.MatMul(a=x, b=y)`, and `gen_math_ops.mat_mul(x, y)` of TensorFlow's inside."""

from __future__ import annotations

import collections
import functools
import inspect
from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import publish_finder
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply_any
from tensorfleet.graph.registry import REQUIRED, OpSpec

# Where the functions of TensorFlow call an argument otherwise than the op does.
_REDUCTIONS = ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")
_ARGUMENTS: dict[str, dict[str, str]] = {
    **{name: {"reduction_indices": "axis"} for name in _REDUCTIONS},
    "ExpandDims": {"dim": "axis"},
    "Select": {"t": "x", "e": "y"},
    "Split": {"split_dim": "axis"},
    "SplitV": {"split_dim": "axis"},
    "Squeeze": {"squeeze_dims": "axis"},
    "Where": {"input": "condition"},
}


def raw_op(op_type: str) -> Callable[..., Any] | None:
    """The function of `tf.raw_ops` for an op type, which takes keywords only; None when there is no such op."""
    return _function(op_type, inspect.Parameter.KEYWORD_ONLY) if registry.find(op_type) else None


def op_function(name: str) -> Callable[..., Any] | None:
    """The function TensorFlow generates for an op, by its name in lower case; None when there is no such op."""
    if name[:1].isupper():
        return raw_op(name)
    op_type = _op_types().get(name.replace("_", "").lower())
    return positional(op_type) if op_type else None


def positional(op_type: str) -> Callable[..., Any]:
    """The function TensorFlow generates for an op type."""
    return _function(op_type, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@functools.cache
def _op_types() -> dict[str, str]:
    return {name.lower(): name for name in registry.all_ops()}


def _function(op_type: str, kind: inspect._ParameterKind) -> Callable[..., Any]:
    spec = registry.get(op_type)
    inputs = [arg.name for arg in spec.inputs]
    called = _ARGUMENTS.get(op_type, {})
    own = {argument: name for name, argument in called.items()}
    signature = inspect.Signature(
        [inspect.Parameter(called.get(n, n), kind, default=d) for n, d in _parameters(spec)]
    )

    def call(*args: object, **kwargs: object) -> Any:
        if args and kind is inspect.Parameter.KEYWORD_ONLY:
            raise TypeError(
                f"{op_type} only takes keyword args (possible keys: {list(signature.parameters)}). "
                "Please pass these args as kwargs instead."
            )
        given = {own.get(n, n): value for n, value in signature.bind(*args, **kwargs).arguments.items()}
        values = [given.pop(name) for name in inputs]
        return named(spec, apply_any(op_type, *values, name=given.pop("name", None), **given))

    call.__name__ = call.__qualname__ = op_type
    call.__doc__ = f"Adds the op {op_type} to the graph."
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _parameters(spec: OpSpec) -> list[tuple[str, Any]]:
    """The names of a function for an op, with their defaults: inputs, attributes that the inputs do not give, name."""
    given = {a for arg in spec.inputs for a in (arg.type_attr, arg.number_attr, arg.type_list_attr) if a}
    attrs = [a for a in spec.attrs.values() if a.name not in given]
    empty = inspect.Parameter.empty
    needed = [(a.name, empty) for a in attrs if a.default is REQUIRED]
    others = [(a.name, None) for a in attrs if a.default is not REQUIRED]
    return [*((arg.name, empty) for arg in spec.inputs), *needed, *others, ("name", None)]


def named(spec: OpSpec, outputs: Any) -> Any:
    """Several outputs, with their names."""
    if len(spec.outputs) < 2:
        return outputs
    return collections.namedtuple(spec.name, [arg.name for arg in spec.outputs])(*outputs)


publish_finder("raw_ops", raw_op, registry.all_ops)
