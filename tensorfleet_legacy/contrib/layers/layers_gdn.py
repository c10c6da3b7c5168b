"""`tf.contrib.layers.gdn`: channels divided by a learned norm of all of them, or multiplied by it."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.layers.base import Layer
from tensorfleet.api.layers.specs import InputSpec
from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor

_AXES = {"channels_first": 1, "channels_last": -1}


def _at_least(x: Any, bound: float) -> Tensor:
    """The larger of both; below the bound, only gradients that lift `x` pass."""

    @find("custom_gradient")
    def bounded(value: Tensor) -> Any:
        def slope(dy: Tensor) -> Tensor:
            passes = find("logical_or")(value >= bound, dy < 0)
            return find("cast")(passes, dy.dtype) * dy

        return find("maximum")(value, to_tensor(bound, value.dtype)), slope

    return bounded(x)


class GDN(Layer):
    """Generalized divisive normalization (Balle et al. 2016): `x_i / sqrt(beta_i + sum_j gamma_ij x_j^2)`.

    Beta and gamma stay positive, as they are kept by their roots.
    """

    def __init__(
        self,
        inverse: bool = False,
        beta_min: float = 1e-6,
        gamma_init: float = 0.1,
        reparam_offset: float = 2**-18,
        data_format: str = "channels_last",
        activity_regularizer: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, activity_regularizer=activity_regularizer, **kwargs)
        if data_format not in _AXES:
            raise ValueError(f"Unsupported `data_format` for GDN layer: {data_format}.")
        self.inverse, self.data_format = inverse, data_format
        self._beta_min, self._gamma_init, self._offset = beta_min, gamma_init, reparam_offset
        self.input_spec = InputSpec(min_ndim=3, max_ndim=5)

    def build(self, input_shape: Any) -> None:
        shape = TensorShape(input_shape)
        channels = shape.as_list()[_AXES[self.data_format]]
        if channels is None:
            raise ValueError("The channel dimension of the inputs to `GDN` must be defined.")
        self._rank = len(shape)
        pedestal = self._offset**2

        def roots(values: Any) -> Any:
            return lambda shape, dtype=None, partition_info=None: find("sqrt")(
                values(shape, dtype) + to_tensor(pedestal, dtype)
            )

        beta = self.add_weight(
            "reparam_beta", shape=[channels], initializer=roots(lambda s, d: find("ones")(s, d))
        )
        gamma = self.add_weight(
            "reparam_gamma",
            shape=[channels, channels],
            initializer=roots(lambda s, d: self._gamma_init * find("eye")(s[0], dtype=d)),
        )
        square = find("square")
        self.beta = square(_at_least(beta, (self._beta_min + pedestal) ** 0.5)) - pedestal
        self.gamma = square(_at_least(gamma, self._offset)) - pedestal
        self.built = True

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        """Normalizes inputs of rank 3 to 5."""
        inputs = to_tensor(inputs, self.dtype)
        last = inputs
        if self.data_format == "channels_first":
            last = find("transpose")(inputs, [0, *range(2, self._rank), 1])
        # The norm of channel i takes row i of gamma as its kernel's column.
        norm = find("sqrt")(find("tensordot")(find("square")(last), self.gamma, [[-1], [0]]) + self.beta)
        outputs = last * norm if self.inverse else last / norm
        if self.data_format == "channels_first":
            outputs = find("transpose")(outputs, [0, self._rank - 1, *range(1, self._rank - 1)])
        outputs.set_shape(inputs.shape)
        return outputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The shape of the inputs."""
        shape = TensorShape(input_shape)
        if not 3 <= len(shape) <= 5:
            raise ValueError("`input_shape` must be of rank 3 to 5, inclusive.")
        return shape


def gdn(
    inputs: Any,
    inverse: bool = False,
    beta_min: float = 1e-6,
    gamma_init: float = 0.1,
    reparam_offset: float = 2**-18,
    data_format: str = "channels_last",
    activity_regularizer: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """The function of the layer `GDN`."""
    given = locals()
    inputs, reuse = to_tensor(given.pop("inputs")), given.pop("reuse")
    layer = GDN(dtype=inputs.dtype.base_dtype, _scope=name, _reuse=reuse, **given)
    return layer.apply(inputs)
