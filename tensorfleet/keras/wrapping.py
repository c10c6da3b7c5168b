"""Keras's layers around other layers: both directions, each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.keras.base import Layer
from tensorfleet.shapes import TensorShape


def _made(layer: Any) -> Any:
    """A layer, also from its description."""
    if not isinstance(layer, dict):
        return layer
    from tensorfleet.keras.configuring import layer_from

    return layer_from(layer)


class Bidirectional(Layer):
    """A recurrent layer forwards and a copy of it backwards, joined by `merge_mode` (None: a list of both)."""

    def __init__(
        self, layer: Any, merge_mode: str | None = "concat", weights: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(weights=weights, **kwargs)
        if merge_mode not in ("sum", "mul", "ave", "concat", None):
            raise ValueError(
                'Invalid merge mode. Merge mode should be one of {"sum", "mul", "ave", "concat", None}'
            )
        self.merge_mode = merge_mode
        layer = _made(layer)
        config = layer.get_config()
        self._wrapped = {"class_name": type(layer).__name__, "config": config}
        name = layer.name
        self.forward_layer = type(layer)(**{**config, "name": f"forward_{name}"})
        backwards = not layer.go_backwards
        self.backward_layer = type(layer)(**{**config, "name": f"backward_{name}", "go_backwards": backwards})

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "layer": self._wrapped}

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask if self.forward_layer.return_sequences else None

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:  # type: ignore[override]
        """Runs both ways."""
        first = self.forward_layer(inputs, mask=mask, training=training)
        second = self.backward_layer(inputs, mask=mask, training=training)
        if self.forward_layer.return_sequences:
            second = find("reverse")(second, [1])
        joined: dict[str | None, Callable] = {
            "concat": lambda: find("concat")([first, second], -1),
            "sum": lambda: first + second,
            "ave": lambda: (first + second) / 2,
            "mul": lambda: first * second,
            None: lambda: [first, second],
        }
        return joined[self.merge_mode]()


class Wrapper(Layer):
    """Base of layers around another layer, which is `layer`."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layer = _made(layer)

    def build(self, input_shape: Any = None) -> None:
        """Makes the layer's variables, named by this one."""
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True
        self.built = True


class TimeDistributed(Wrapper):
    """Another layer, applied to each step of a sequence."""

    _passes_masks = True

    def build(self, input_shape: Any = None) -> None:
        """Makes the layer's variables, named by this one."""
        dims = TensorShape(input_shape)
        super().build(TensorShape([dims[0]]).concatenate(dims[2:]))

    def call(self, inputs: Any, training: Any = None) -> Tensor:  # type: ignore[override]
        sizes = find("shape")(inputs)
        flat = find("reshape")(inputs, find("concat")([[-1], sizes[2:]], 0))
        flat.set_shape([None, *inputs.shape.as_list()[2:]])
        made = self.layer(flat)
        rest = made.shape.as_list()[1:]
        result = find("reshape")(made, find("concat")([sizes[:2], find("shape")(made)[1:]], 0))
        result.set_shape([*inputs.shape.as_list()[:2], *rest])
        return result
