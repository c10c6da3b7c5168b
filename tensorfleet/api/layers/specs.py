"""Specifications of a layer's inputs, and the types of its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.api.nn.pooling import Sizes
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.operation import Tensor

if TYPE_CHECKING:
    from tensorfleet.api.variables.scope import VariableScope

#: A function of a tensor, or the name of one in `tf.nn`; None for the identity.
Activation: TypeAlias = "Callable[[Tensor], Tensor] | str | None"
#: What gives a variable its first value: an initializer, its name in `tf.initializers`, or the value itself.
InitializerLike: TypeAlias = object
#: The loss of a variable or of an output, or None for no loss.
Regularizer: TypeAlias = "Callable[[Any], Tensor | None]"
#: What a variable becomes after each of its updates.
Constraint: TypeAlias = "Callable[[Any], Tensor]"
#: Tensors, sizes or specs nested in lists, tuples and dictionaries: see `tf.nest`.
Nested: TypeAlias = object
#: A variable scope, or its name.
ScopeLike: TypeAlias = "VariableScope | str | None"


@export("layers.InputSpec")
class InputSpec:
    """The type, rank, shape and axis sizes that an input of a layer must have; None says nothing."""

    def __init__(
        self,
        dtype: DTypeLike | None = None,
        shape: Sequence[int | None] | None = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: Mapping[int, int | None] | None = None,
    ) -> None:
        self.dtype = None if dtype is None else dtypes.as_dtype(dtype).name
        self.shape = shape
        self.ndim = len(shape) if shape is not None else ndim
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        self.axes = {int(k): v for k, v in (axes or {}).items()}

    def __repr__(self) -> str:
        given = {**self.get_config(), "axes": self.axes or None}
        return f"InputSpec({', '.join(f'{k}={v}' for k, v in given.items() if v is not None)})"

    def get_config(self) -> dict[str, Any]:
        """The arguments to make the same specification again."""
        names = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> InputSpec:
        """A specification from the configuration that `get_config` gave."""
        return cls(**config)


def check_inputs(
    layer: str, specs: InputSpec | Sequence[InputSpec | None] | None, inputs: list[Tensor]
) -> None:
    """ValueError when an input does not fit the layer's specification."""
    if not specs:
        return
    wanted = [specs] if isinstance(specs, InputSpec) else list(specs)
    if len(wanted) != len(inputs):
        raise ValueError(f"Layer {layer} expects {len(wanted)} inputs, but it received {len(inputs)}.")
    for i, (spec, tensor) in enumerate(zip(wanted, inputs, strict=True)):
        problem = spec is not None and _mismatch(spec, tensor)
        if problem:
            raise ValueError(f"Input {i} of layer {layer} is incompatible with the layer: {problem}")


def _mismatch(spec: InputSpec, tensor: Tensor) -> str | None:
    shape, rank = tensor.shape, tensor.shape.ndims
    if rank is None:
        needed = any(n is not None for n in (spec.ndim, spec.min_ndim, spec.max_ndim))
        return "its rank is undefined, but the layer requires a defined rank." if needed else None
    sizes = shape.as_list()
    for what, limit, wrong in (
        ("ndim", spec.ndim, spec.ndim is not None and rank != spec.ndim),
        ("max_ndim", spec.max_ndim, spec.max_ndim is not None and rank > spec.max_ndim),
        ("min_ndim", spec.min_ndim, spec.min_ndim is not None and rank < spec.min_ndim),
    ):
        if wrong:
            return f"expected {what}={limit}, found ndim={rank}. Full shape received: {sizes}"
    if spec.dtype is not None and tensor.dtype.base_dtype.name != spec.dtype:
        return f"expected dtype={spec.dtype}, found dtype={tensor.dtype.base_dtype.name}"
    for axis, size in spec.axes.items():
        if size is not None and sizes[axis] not in (size, None):
            return f"expected axis {axis} of input shape to have value {size} but received input with shape {sizes}"
    if spec.shape is not None and not TensorShape(spec.shape).is_compatible_with(shape):
        return f"expected shape={tuple(spec.shape)}, found shape={sizes}"
    return None


def snake_case(name: str) -> str:
    """`MaxPooling2D` as `max_pooling2d`, the way layers are named."""
    split = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    snake = re.sub("([a-z])([A-Z])", r"\1_\2", split).lower()
    return "private" + snake if snake.startswith("_") else snake


def tuple_of(value: Sizes, count: int, name: str) -> tuple[int, ...]:
    """One integer for all dimensions, or one for each."""
    if isinstance(value, int):
        return (value,) * count
    problem = f"The `{name}` argument must be a tuple of {count} integers. Received: {value}"
    try:
        result = tuple(int(v) for v in value)
    except (TypeError, ValueError) as e:
        raise ValueError(problem) from e
    if len(result) != count:
        raise ValueError(problem)
    return result


def data_format_of(value: str | None) -> str:
    """`channels_last` or `channels_first`."""
    result = "channels_last" if value is None else str(value).lower()
    if result not in ("channels_first", "channels_last"):
        raise ValueError(
            f'The `data_format` argument must be one of "channels_first", "channels_last". Received: {value}'
        )
    return result


def padding_of(value: str, causal: bool = False) -> str:
    """`valid` or `same`; `causal` where that makes sense."""
    result = str(value).lower()
    if result not in ("valid", "same") and not (causal and result == "causal"):
        raise ValueError(
            f'The `padding` argument must be one of "valid", "same" (or "causal", only for `Conv1D`). Received: {value}'
        )
    return result


def layout_of(data_format: str, rank: int) -> str:
    """The layout as operations name it: NHWC and its kin."""
    space = "DHW"[-rank:] if rank > 1 else "W"
    return f"NC{space}" if data_format == "channels_first" else f"N{space}C"


_ACTIVATIONS = "relu, relu6, elu, selu, sigmoid, tanh, softmax, softplus, softsign, leaky_relu"


def activation_of(value: Activation) -> Callable[[Tensor], Tensor] | None:
    """A function, or one of those in `tf.nn` by its name; None for the identity."""
    if value is None or value == "linear":
        return None
    if callable(value):
        return value
    if value in _ACTIVATIONS.split(", "):
        result: Callable[[Tensor], Tensor] | None = find(f"nn.{value}")
        return result
    raise ValueError(f"Unknown activation function: {value}. Pass a function, or one of {_ACTIVATIONS}.")


def known_bool(value: TensorLike) -> bool | None:
    """True or False when that is known while the graph is built; None for a tensor decided at run time."""
    if value is None:
        return False
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    if isinstance(value, Tensor) or hasattr(value, "_as_graph_element"):
        # Only a plain constant: any other tensor may come to depend on feeds.
        if isinstance(value, Tensor) and value.op.type == "Const":
            return bool(constant_value(value))
        return None
    raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: {value}")
