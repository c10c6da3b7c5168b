"""Keras's less common activations and dropouts."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.layers.specs import InputSpec
from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import activations as getting
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras import regularizers as restraints
from tensorfleet_legacy.keras.engine.base_layer import Layer
from tensorfleet_legacy.keras.layers.core import _Noise


class PReLU(Layer):
    """`x` above zero, `alpha * x` below, where `alpha` is learned: one for each element, or along `shared_axes`."""

    def __init__(
        self,
        alpha_initializer: Any = "zeros",
        alpha_regularizer: Any = None,
        alpha_constraint: Any = None,
        shared_axes: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.alpha_initializer = getting.initializer(alpha_initializer)
        self.alpha_regularizer = getting.regularizer(alpha_regularizer)
        self.alpha_constraint = getting.constraint(alpha_constraint)
        if shared_axes is not None and not isinstance(shared_axes, (list, tuple)):
            shared_axes = [shared_axes]
        self.shared_axes = shared_axes

    def build(self, input_shape: Any) -> None:
        dims = TensorShape(input_shape).as_list()[1:]
        for axis in self.shared_axes or ():
            dims[axis - 1] = 1
        self.alpha = self.add_weight(
            "alpha",
            dims,
            initializer=self.alpha_initializer,
            regularizer=self.alpha_regularizer,
            constraint=self.alpha_constraint,
        )
        self.built = True

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        relu = find("nn.relu")
        return relu(inputs) - self.alpha * relu(-inputs)


class ThresholdedReLU(Layer):
    """`x` above `theta`, else zero."""

    def __init__(self, theta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.theta = float(theta)

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        return inputs * find("cast")(inputs > self.theta, inputs.dtype)


class ActivityRegularization(Layer):
    """Passes its input on, whose size is a loss."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any) -> None:
        super().__init__(activity_regularizer=restraints.L1L2(l1=l1, l2=l2), **kwargs)
        self.l1, self.l2 = l1, l2

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        return find("identity")(inputs)


class AlphaDropout(_Noise):
    """A dropout that keeps mean and deviation, for networks of `selu`."""

    def __init__(self, rate: float, noise_shape: Any = None, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def _trained(self, inputs: Tensor) -> Tensor:
        if not 0.0 < self.rate < 1.0:
            return find("identity")(inputs)
        lowest = -1.6732632423543772 * 1.0507009873554805  # what selu gives far to the left
        shape = find("shape")(inputs) if self.noise_shape is None else self.noise_shape
        kept = find("random_uniform")(shape, seed=self.seed, dtype=inputs.dtype) >= self.rate
        kept = find("cast")(kept, inputs.dtype)
        scale = ((1 - self.rate) * (1 + self.rate * lowest**2)) ** -0.5
        return scale * (inputs * kept + lowest * (1 - kept)) - scale * lowest * self.rate


class _SpatialDropout(_Noise):
    """Drops whole channels."""

    _rank: int

    def _drop(self, rate: float, data_format: str | None, kwargs: dict[str, Any]) -> None:
        _Noise.__init__(self, **kwargs)
        self.rate = rate
        self.data_format = data_format or ("channels_last" if self._rank == 1 else state.image_data_format())
        if self.data_format not in ("channels_last", "channels_first"):
            raise ValueError('data_format must be in {"channels_last", "channels_first"}')
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def _trained(self, inputs: Tensor) -> Tensor:
        sizes, ones = find("shape")(inputs), [1] * self._rank
        last = self.data_format == "channels_last"
        shape = [sizes[0], *ones, sizes[self._rank + 1]] if last else [sizes[0], sizes[1], *ones]
        return find("nn.dropout")(inputs, noise_shape=find("stack")(shape), rate=self.rate)


class SpatialDropout1D(_SpatialDropout):
    """Drops whole channels of sequences."""

    _rank = 1

    def __init__(self, rate: float, **kwargs: Any) -> None:
        self._drop(rate, None, kwargs)


class SpatialDropout2D(_SpatialDropout):
    """Drops whole channels of images."""

    _rank = 2

    def __init__(self, rate: float, data_format: str | None = None, **kwargs: Any) -> None:
        self._drop(rate, data_format, kwargs)


class SpatialDropout3D(_SpatialDropout):
    """Drops whole channels of volumes."""

    _rank = 3

    def __init__(self, rate: float, data_format: str | None = None, **kwargs: Any) -> None:
        self._drop(rate, data_format, kwargs)
