"""Keras's layers of numbers: dense, dropout, embeddings, shapes, activations, functions."""

from __future__ import annotations

import math
from typing import Any

from tensorfleet.api.layers import core
from tensorfleet.api.layers.specs import InputSpec, known_bool
from tensorfleet.base import dtypes
from tensorfleet.base.arguments import REQUIRED, like, taking
from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.control.cond import cond
from tensorfleet_legacy.keras import activations as getting
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.engine.base_layer import Layer


def converted(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor, with names looked up."""
    result = dict(arguments)
    for key, value in arguments.items():
        if key.endswith("_initializer"):
            result[key] = getting.initializer(value)
        elif key.endswith("_regularizer"):
            result[key] = getting.regularizer(value)
        elif key.endswith("_constraint"):
            result[key] = getting.constraint(value)
        elif key == "activation" and value is not None:
            result[key] = getting.activation(value)
        elif key == "data_format" and value is None:
            result[key] = state.image_data_format()
    return result


WEIGHTS: dict[str, Any] = {"kernel_initializer": "glorot_uniform", "bias_initializer": "zeros"}


def as_keras(base: type, without: tuple[str, ...] = ("trainable", "name"), **defaults: Any) -> Any:
    """A constructor with the arguments of a layer of `tf.layers`, for which names may be given as Keras has them."""

    def make(self: Any, given: dict[str, Any]) -> None:
        Layer.__init__(self, **converted(given))

    return taking(like(base, without, **defaults))(make)


class Dense(Layer, core.Dense):
    """`activation(inputs @ kernel + bias)`, over the last axis of the input."""

    _passes_masks = True

    __init__ = as_keras(core.Dense, **WEIGHTS)


class Dropout(Layer, core.Dropout):
    """Zeroes a share `rate` of the input in training and scales up the rest; else passes it on."""

    _passes_masks = True

    __init__ = as_keras(core.Dropout, without=("name",), rate=REQUIRED)

    def call(self, inputs: Any, training: Any = None) -> Tensor:  # type: ignore[override]
        """Drops when `training`, which may be a tensor; by the learning phase when that is None."""
        return core.Dropout.call(self, inputs, state.decided(training))


class _Noise(Layer):
    """Something done in training only."""

    _passes_masks = True

    def _trained(self, inputs: Tensor) -> Tensor:
        return inputs

    def call(self, inputs: Any, training: Any = None) -> Tensor:  # type: ignore[override]
        """Does it when `training`, which may be a tensor; by the learning phase when that is None."""
        training = state.decided(training)
        known = known_bool(training)
        if known is None:
            return cond(training, lambda: self._trained(inputs), lambda: find("identity")(inputs))
        return self._trained(inputs) if known else find("identity")(inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape


class GaussianNoise(_Noise):
    """Adds noise of a standard deviation in training."""

    def __init__(self, stddev: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stddev = stddev

    def _trained(self, inputs: Tensor) -> Tensor:
        return inputs + find("random_normal")(find("shape")(inputs), 0.0, self.stddev, inputs.dtype)


class GaussianDropout(_Noise):
    """Multiplies with noise of mean one in training, as strong as a dropout of `rate`."""

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def _trained(self, inputs: Tensor) -> Tensor:
        deviation = math.sqrt(self.rate / (1.0 - self.rate))
        return inputs * find("random_normal")(find("shape")(inputs), 1.0, deviation, inputs.dtype)


class Flatten(Layer, core.Flatten):
    """Makes one axis of all but the first."""

    __init__ = as_keras(core.Flatten)


class Reshape(Layer):
    """Gives each example another shape, of which one size may be -1."""

    def __init__(self, target_shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        result = find("reshape")(inputs, (find("shape")(inputs)[0], *self.target_shape))
        result.set_shape(self.compute_output_shape(inputs.shape))
        return result

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The batch, then the target."""
        dims = TensorShape(input_shape)
        target = list(self.target_shape)
        if -1 in target:
            rest = -math.prod(target)
            total = dims[1:].num_elements()
            if total is not None and total % rest:
                raise ValueError(
                    f"total size of new array must be unchanged, input_shape = {dims[1:]}, output_shape = {target}"
                )
            target[target.index(-1)] = None if total is None else total // rest
        return TensorShape([dims[0], *target])


class Permute(Layer):
    """Reorders the axes of each example, counted from 1."""

    def __init__(self, dims: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ValueError(
                f"Invalid permutation `dims` for Permute Layer: {dims}. The set of indices in `dims` must be "
                "consecutive and start from 1."
            )
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        """Transposes."""
        return find("transpose")(inputs, (0, *self.dims))


class RepeatVector(Layer):
    """Each vector `n` times, as a sequence."""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n = n
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        return find("tile")(find("expand_dims")(inputs, 1), [1, self.n, 1])


class Activation(Layer):
    """A function of Keras's activations by its name, or any function."""

    _passes_masks = True

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = getting.activation(activation)

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        return self.activation(inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape


class ReLU(Layer):
    """`max(x, 0)`, with a slope below the threshold and a greatest value if wanted."""

    _passes_masks = True

    def __init__(
        self, max_value: float | None = None, negative_slope: float = 0, threshold: float = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if max_value is not None and max_value < 0.0:
            raise ValueError("max_value of Relu layer cannot be negative value: " + str(max_value))
        self.max_value, self.negative_slope, self.threshold = max_value, negative_slope, threshold

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        return getting.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class LeakyReLU(Layer):
    """`x` above zero, `alpha * x` below."""

    _passes_masks = True

    def __init__(self, alpha: float = 0.3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        return find("nn.leaky_relu")(inputs, alpha=self.alpha)


class ELU(Layer):
    """`x` above zero, `alpha * (exp(x) - 1)` below."""

    _passes_masks = True

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        return getting.elu(inputs, self.alpha)


class Softmax(Layer):
    """Numbers that sum to one along an axis."""

    _passes_masks = True

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        return find("nn.softmax")(inputs, axis=self.axis)


class Masking(Layer):
    """Steps all of whose elements are `mask_value` do not count."""

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mask_value = mask_value

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return find("reduce_any")(find("not_equal")(inputs, self.mask_value), -1)

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        counts = find("reduce_any")(find("not_equal")(inputs, self.mask_value), -1, keepdims=True)
        return inputs * find("cast")(counts, inputs.dtype)


class Embedding(Layer):
    """A row of a table for each number."""

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        activity_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        input_length: int | None = None,
        **kwargs: Any,
    ) -> None:
        if "input_shape" not in kwargs and "batch_input_shape" not in kwargs:
            kwargs["input_shape"] = (input_length,)
        super().__init__(activity_regularizer=getting.regularizer(activity_regularizer), **kwargs)
        self.input_dim, self.output_dim, self.input_length = input_dim, output_dim, input_length
        self.embeddings_initializer = getting.initializer(embeddings_initializer)
        self.embeddings_regularizer = getting.regularizer(embeddings_regularizer)
        self.embeddings_constraint = getting.constraint(embeddings_constraint)
        self.mask_zero = mask_zero

    def _first_call(self, inputs: Any, flat: list) -> None:
        self._dtype = self._dtype or state.floatx()  # never the type of the numbers
        super()._first_call(inputs, flat)

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            "embeddings",
            (self.input_dim, self.output_dim),
            initializer=self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
        )
        self.built = True

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return find("not_equal")(inputs, 0) if self.mask_zero else None

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        if inputs.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
            inputs = find("cast")(inputs, dtypes.int32)
        return find("nn.embedding_lookup")(self.embeddings, inputs)
