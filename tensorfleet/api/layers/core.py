"""Dense layers, dropout, flattening."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.layers.base import Layer
from tensorfleet.api.layers.options import function_of
from tensorfleet.api.layers.specs import (
    Activation,
    Constraint,
    InitializerLike,
    InputSpec,
    Regularizer,
    activation_of,
    data_format_of,
    known_bool,
)
from tensorfleet.api.nn.normalization import dropout as drop_out
from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import ShapeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.shape import reshape, shape
from tensorfleet.ops.array.transpose import transpose
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.linalg.contract import tensordot
from tensorfleet.ops.nn.activations import bias_add

_ZEROS = Zeros()


@export("layers.Dense")
class Dense(Layer):
    """`activation(inputs @ kernel + bias)`, over the last axis of the input."""

    def __init__(
        self,
        units: int,
        activation: Activation = None,
        use_bias: bool = True,
        kernel_initializer: InitializerLike = None,
        bias_initializer: InitializerLike = _ZEROS,
        kernel_regularizer: Regularizer | None = None,
        bias_regularizer: Regularizer | None = None,
        activity_regularizer: Regularizer | None = None,
        kernel_constraint: Constraint | None = None,
        bias_constraint: Constraint | None = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.units = int(units)
        self.activation = activation_of(activation)
        self.use_bias = use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: ShapeLike) -> None:
        """Makes the kernel and the bias."""
        kind = dtypes.as_dtype(self.dtype or dtypes.float32)
        if not (kind.is_floating or kind.is_complex):
            raise TypeError(f"Unable to build `Dense` layer with non-floating point dtype {kind.name}")
        last = TensorShape(input_shape)[-1].value
        if last is None:
            raise ValueError("The last dimension of the inputs to `Dense` should be defined. Found `None`.")
        self.input_spec = InputSpec(min_ndim=2, axes={-1: last})
        self.kernel = self.add_weight(
            "kernel",
            [last, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.built = True

    def call(self, inputs: Tensor) -> Tensor:  # type: ignore[override]
        """Multiplies, adds the bias, applies the activation."""
        rank = inputs.shape.ndims
        if rank is not None and rank > 2:
            outputs = tensordot(inputs, self.kernel, [[rank - 1], [0]])
            # `tensordot` loses static sizes when others are unknown.
            outputs.set_shape(inputs.shape.as_list()[:-1] + [self.units])
        else:
            outputs = apply("MatMul", inputs, self.kernel)
        if self.use_bias:
            outputs = bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        """The input's shape with `units` in place of its last dimension."""
        known = TensorShape(input_shape).with_rank_at_least(2)
        if known[-1].value is None:
            raise ValueError(
                f"The innermost dimension of input_shape must be defined, but saw: {input_shape}"
            )
        result: TensorShape = known[:-1].concatenate(self.units)
        return result


dense = export("layers.dense")(function_of(Dense, "dense"))


@export("layers.Dropout")
class Dropout(Layer):
    """Zeroes a share `rate` of the input in training and scales up the rest; else passes it on."""

    def __init__(
        self,
        rate: TensorLike = 0.5,
        noise_shape: TensorLike = None,
        seed: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Tensor, training: TensorLike = False) -> Tensor:  # type: ignore[override]
        """Drops when `training`, which may be a tensor."""
        known = known_bool(training)
        if known is None:
            result: Tensor = cond(training, lambda: self._dropped(inputs), lambda: apply("Identity", inputs))
            return result
        return self._dropped(inputs) if known else apply("Identity", inputs)

    def _dropped(self, inputs: Tensor) -> Tensor:
        return drop_out(inputs, noise_shape=self.noise_shape, seed=self.seed, rate=self.rate)

    def compute_output_shape(self, input_shape: ShapeLike) -> ShapeLike:
        """The shape of the input: dropout keeps it."""
        return input_shape


@export("layers.dropout")
def dropout(
    inputs: TensorLike,
    rate: TensorLike = 0.5,
    noise_shape: TensorLike = None,
    seed: int | None = None,
    training: TensorLike = False,
    name: str | None = None,
) -> Tensor:
    """Zeroes a share `rate` of the inputs when `training`, which may be a tensor."""
    result: Tensor = Dropout(rate, noise_shape, seed, name)(inputs, training=training)
    return result


@export("layers.Flatten")
class Flatten(Layer):
    """Makes one axis of all but the first."""

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = data_format_of(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Tensor) -> Tensor:  # type: ignore[override]
        """Reshapes; channels come last whichever the layout."""
        rank = inputs.shape.ndims
        if self.data_format == "channels_first" and rank is not None and rank > 2:
            inputs = transpose(inputs, [0, *range(2, rank), 1])
        batch = inputs.shape[0].value
        outputs = reshape(inputs, [shape(inputs)[0] if batch is None else batch, -1])
        outputs.set_shape(self.compute_output_shape(inputs.shape))
        return outputs

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        """(batch, everything else)."""
        known = TensorShape(input_shape).with_rank_at_least(1)
        return TensorShape([known[0], known[1:].num_elements()])


@export("layers.flatten")
def flatten(inputs: TensorLike, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """Makes one axis of all but the first."""
    result: Tensor = Flatten(data_format, name=name)(inputs)
    return result
