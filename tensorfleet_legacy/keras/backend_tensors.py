"""The functions of `tf.keras.backend` that the graph itself has not, or has with other arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.gradients import gradients as gradients_of
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.backend_arithmetic import forwarding


def eval(x: Any) -> Any:
    """The value of a tensor or a variable, in the session."""
    return state.get_value(x)


def batch_get_value(tensors: list) -> list:
    """The values of several variables."""
    return state.get_session().run(list(tensors)) if tensors else []


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A constant, of Keras's type unless given."""
    return find("constant")(value, dtype=dtype or state.floatx(), shape=shape, name=name)


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of zeros."""
    return _filled("zeros", shape, dtype, name)


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A variable of ones."""
    return _filled("ones", shape, dtype, name)


def _filled(what: str, shape: Any, dtype: Any, name: str | None) -> Any:
    value = find(what)(shape, dtype or state.floatx())
    return state.variable(value, dtype, name) if value.shape.is_fully_defined() else value


zeros_like = forwarding(
    "zeros_like", "x, dtype=None, name=None", "zeros_like", "Zeros of the shape of a tensor."
)
ones_like = forwarding("ones_like", "x, dtype=None, name=None", "ones_like", "Ones of the shape of a tensor.")
clip = forwarding(
    "clip", "x, min_value, max_value", "clip_by_value", "A tensor with what is below or above replaced."
)
softmax = forwarding("softmax", "x, axis=-1", "nn.softmax", "Numbers that sum to one along an axis.")


def ndim(x: Any) -> int | None:
    """How many axes a tensor has."""
    return x.shape.ndims


def dtype(x: Any) -> str:
    """The name of a tensor's type."""
    return x.dtype.base_dtype.name


def cast_to_floatx(x: Any) -> Any:
    """An array or a tensor in Keras's type."""
    if isinstance(x, Tensor) or hasattr(x, "_as_graph_element"):
        return find("cast")(x, state.floatx())
    return np.asarray(x, dtype=state.floatx())


def flatten(x: Any) -> Tensor:
    """All elements as one axis."""
    return find("reshape")(x, [-1])


def batch_flatten(x: Any) -> Tensor:
    """Each example as one axis."""
    x = to_tensor(x)
    return find("reshape")(x, find("stack")([-1, find("reduce_prod")(find("shape")(x)[1:])]))


def squeeze(x: Any, axis: int) -> Tensor:
    """A tensor without an axis of size one."""
    return find("squeeze")(x, [axis])


def batch_dot(x: Any, y: Any, axes: Any = None) -> Tensor:
    """The products of the matrices of two batches, along an axis of each."""
    from tensorfleet_legacy.keras.layers.merge import Dot

    x, y = to_tensor(x), to_tensor(y)
    if axes is None:
        axes = [len(x.shape) - 1, len(y.shape) - 2 if len(y.shape) > 2 else 1]
    return Dot(axes)._merged([x, y])


def concatenate(tensors: list, axis: int = -1) -> Tensor:
    """Tensors one behind the other."""
    return find("concat")([to_tensor(t) for t in tensors], axis)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = "int32") -> Tensor:
    """Numbers at equal distances."""
    result = find("range")(start, limit=stop, delta=step) if stop is not None else find("range")(start)
    return result if dtype == "int32" else find("cast")(result, dtype)


def bias_add(x: Any, bias: Any, data_format: str | None = None) -> Tensor:
    """A tensor with a number added to each channel."""
    first = (data_format or state.image_data_format()) == "channels_first"
    rank = x.shape.ndims or 0
    layout = "NCHW" if first and rank > 2 else "NHWC"
    return find("nn.bias_add")(x, bias, data_format=layout)


def dropout(x: Any, level: Any, noise_shape: Any = None, seed: int | None = None) -> Tensor:
    """Zeroes a share of the elements and scales up the rest."""
    return find("nn.dropout")(x, rate=level, noise_shape=noise_shape, seed=seed)


def update(x: Any, new_x: Any) -> Any:
    """Gives a variable a new value."""
    return x.assign(new_x)


def update_add(x: Any, increment: Any) -> Any:
    """Adds to a variable."""
    return x.assign_add(increment)


def update_sub(x: Any, decrement: Any) -> Any:
    """Subtracts from a variable."""
    return x.assign_sub(decrement)


def gradients(loss: Any, variables: Any) -> list:
    """The gradients of a loss."""
    return gradients_of(loss, variables)


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """Numbers of a normal distribution."""
    return find("random_normal")(shape, mean, stddev, dtype or state.floatx(), seed)


def random_uniform(
    shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """Numbers of a uniform distribution."""
    return find("random_uniform")(shape, minval, maxval, dtype or state.floatx(), seed)


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Tensor:
    """Numbers of a normal distribution, none beyond two deviations."""
    return find("truncated_normal")(shape, mean, stddev, dtype or state.floatx(), seed)


def _chosen(value: Any) -> Any:
    return value() if callable(value) else value


def switch(condition: Any, then_expression: Any, else_expression: Any) -> Tensor:
    """One of two tensors (or of what two functions give), as a condition says: one for all, or for each element."""
    condition = to_tensor(condition)
    if condition.shape.ndims == 0:
        return find("cond")(
            find("cast")(condition, "bool"),
            lambda: find("identity")(_chosen(then_expression)),
            lambda: find("identity")(_chosen(else_expression)),
        )
    then, other = to_tensor(_chosen(then_expression)), to_tensor(_chosen(else_expression))
    flags = find("cast")(condition, "bool")
    for _ in range((then.shape.ndims or 0) - (flags.shape.ndims or 0)):
        flags = find("expand_dims")(flags, -1)
    return find("where")(find("broadcast_to")(flags, find("shape")(then)), then, other)


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`x` in training, else `alt`."""
    phase = state.learning_phase() if training is None else training
    if isinstance(phase, (int, bool)):
        return _chosen(x if phase else alt)
    return switch(phase, x, alt)


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`alt` in training, else `x`."""
    return in_train_phase(alt, x, training=training)


def print_tensor(x: Any, message: str = "") -> Tensor:
    """A tensor that is printed when it is computed."""
    return find("Print")(x, [x], message)


def count_params(x: Any) -> int:
    """How many elements a tensor has."""
    return int(np.prod(x.shape.as_list()))
