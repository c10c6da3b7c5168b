"""`tf.keras.experimental`: models that are made already, a line and a network beside it."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import nest
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import activations as getting
from tensorfleet_legacy.keras.engine.network import Model
from tensorfleet_legacy.keras.layers.core import Dense


class LinearModel(Model):
    """`activation(sum of inputs @ kernels + bias)`, a kernel for each input."""

    def __init__(
        self,
        units: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units, self.use_bias = units, use_bias
        self.activation = getting.activation(activation)
        self.kernel_initializer = getting.initializer(kernel_initializer)
        self.bias_initializer = getting.initializer(bias_initializer)
        self.kernel_regularizer = getting.regularizer(kernel_regularizer)
        self.bias_regularizer = getting.regularizer(bias_regularizer)
        self.dense_layers: list[Dense] = []
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        """Makes a kernel for each input, and the bias."""
        several = isinstance(input_shape, (list, tuple)) and any(
            not isinstance(d, (int, type(None))) for d in input_shape
        )
        for i in range(len(input_shape) if several else 1):
            layer = Dense(
                self.units,
                use_bias=False,
                kernel_initializer=self.kernel_initializer,
                kernel_regularizer=self.kernel_regularizer,
                name=f"input_{i}",
            )
            self.dense_layers.append(layer)
        if self.use_bias:
            options = {"initializer": self.bias_initializer, "regularizer": self.bias_regularizer}
            self.bias = self.add_weight("bias", (self.units,), **options)
        self.built = True

    def _first_call(self, inputs: Any, flat: list) -> None:
        self.build([t.shape for t in flat] if len(flat) > 1 else flat[0].shape)

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        """The sum over inputs."""
        given = nest.flatten(inputs)
        items = [layer(x) for layer, x in zip(self.dense_layers, given, strict=True)]
        total = items[0] if len(items) == 1 else find("add_n")(items)
        total = total if self.bias is None else find("nn.bias_add")(total, self.bias)
        return self.activation(total)

    def get_config(self) -> dict[str, Any]:
        own = ("units", "use_bias", "activation", "kernel_initializer", "bias_initializer")
        names = (*own, "kernel_regularizer", "bias_regularizer")
        return {"name": self.name, **{key: getting.serialized(getattr(self, key)) for key in names}}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
        """A model from what `get_config` gave."""
        return cls(**config)


class WideDeepModel(Model):
    """The sum of what a linear model and a network make of the inputs: the same, or a list of one for each."""

    def __init__(self, linear_model: Any, dnn_model: Any, activation: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.linear_model, self.dnn_model = linear_model, dnn_model
        self.activation = getting.activation(activation)

    def call(self, inputs: Any) -> Any:  # type: ignore[override]
        """The sum of both models' results."""
        several = isinstance(inputs, (tuple, list)) and len(inputs) == 2
        wide, deep = inputs if several else (inputs, inputs)
        result = nest.map_structure(lambda a, b: a + b, self.linear_model(wide), self.dnn_model(deep))
        return nest.map_structure(self.activation, result)

    def get_config(self) -> dict[str, Any]:
        from tensorfleet_legacy.keras.saving.model_config import serialize_layer

        models = {key: serialize_layer(getattr(self, key)) for key in ("linear_model", "dnn_model")}
        return {"name": self.name, **models, "activation": getting.serialized(self.activation)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
        """A model from what `get_config` gave."""
        from tensorfleet_legacy.keras.saving.model_config import layer_from

        known = {"LinearModel": LinearModel, **(custom_objects or {})}
        models = {key: layer_from(config.pop(key), known) for key in ("linear_model", "dnn_model")}
        return cls(**models, **config)
