"""Keras's layers around other layers: both directions, each step."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras.engine.base_layer import Layer
from tensorfleet_legacy.keras.layers.recurrent import TakesStates
from tensorfleet_legacy.keras.utils.generic_utils import CustomObjectScope


def _made(layer: Any) -> Any:
    """A layer, also from its description."""
    if not isinstance(layer, dict):
        return layer
    from tensorfleet_legacy.keras.saving.model_config import layer_from

    return layer_from(layer)


class Wrapper(Layer):
    """Base of layers around another layer, which is `layer`."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layer = _made(layer)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
        """A layer from what `get_config` gave."""
        with CustomObjectScope(custom_objects or {}):
            return cls(**config)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "layer": _described(self.layer)}

    def build(self, input_shape: Any = None) -> None:
        """Makes the layer's variables, named by this one."""
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True
        self.built = True


class Bidirectional(TakesStates, Wrapper):
    """A recurrent layer forwards and a copy of it backwards, joined by `merge_mode` (None: a list of both)."""

    _untracked = Wrapper._untracked | {"_like"}

    def __init__(
        self,
        layer: Any,
        merge_mode: str | None = "concat",
        weights: Any = None,
        backward_layer: Any = None,
        **kwargs: Any,
    ) -> None:
        if merge_mode not in ("sum", "mul", "ave", "concat", None):
            raise ValueError(
                'Invalid merge mode. Merge mode should be one of {"sum", "mul", "ave", "concat", None}'
            )
        layer, backward_layer = _made(layer), _made(backward_layer)
        super().__init__(layer, weights=weights, **kwargs)
        self.merge_mode = merge_mode
        self._backwards_given = backward_layer is not None
        self.forward_layer = _renamed(layer, "forward_")
        if backward_layer is None:
            self.backward_layer = _renamed(layer, "backward_", go_backwards=not layer.go_backwards)
        else:
            _check_opposite(self.forward_layer, backward_layer)
            self.backward_layer = backward_layer
        self.return_sequences, self.return_state = layer.return_sequences, layer.return_state
        self.stateful, self.supports_masking = layer.stateful, True

    @property
    def layer(self) -> Any:
        """The layer that both ways are like. Their weights are not its own, so it is no part of this one."""
        return self._like[0]

    @layer.setter
    def layer(self, value: Any) -> None:
        self._like = (value,)

    def build(self, input_shape: Any) -> None:  # type: ignore[override]
        """Its layers make their variables when they are called."""
        self.built = True

    @property
    def constraints(self) -> dict:
        """The constraints of both directions' weights."""
        layers = (self.forward_layer, self.backward_layer)
        return {k: v for layer in layers for k, v in getattr(layer, "constraints", {}).items()}

    def reset_states(self) -> None:
        """Starts both ways over."""
        self.forward_layer.reset_states()
        self.backward_layer.reset_states()

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("backward_layer", None)
        if self._backwards_given:
            config["backward_layer"] = _described(self.backward_layer)
        return config

    def compute_mask(self, inputs: Any, mask: Any) -> Any:  # type: ignore[override]
        """Sequences have the mask of the input; last outputs and states have none."""
        given = mask[0] if isinstance(mask, list) else mask
        own = given if self.return_sequences else None
        result = [own, own] if not self.merge_mode else [own]
        states = [None] * 2 * len(self.forward_layer.states) if self.return_state else []
        return [*result, *states] if len(result) + len(states) > 1 else own

    def call(  # type: ignore[override]
        self,
        inputs: Any,
        training: Any = None,
        mask: Any = None,
        initial_state: Any = None,
        constants: Any = None,
    ) -> Any:
        """Runs both ways."""
        inputs, initial_state, constants = self._parted(inputs, initial_state, constants)
        mask = mask[0] if isinstance(mask, list) else mask
        halves: list = [None, None]
        if initial_state is not None:
            if len(initial_state) % 2:
                raise ValueError(
                    "When passing `initial_state` to a Bidirectional RNN, the state should be a list containing the "
                    f"states of the underlying RNNs. Found: {initial_state}"
                )
            at = len(initial_state) // 2
            halves = [initial_state[:at], initial_state[at:]]
        options: dict[str, Any] = {"mask": mask, "training": training}
        if constants is not None:
            options["constants"] = constants
        first = self.forward_layer(inputs, initial_state=halves[0], **options)
        second = self.backward_layer(inputs, initial_state=halves[1], **options)
        states: list = []
        if self.return_state:
            states = [*first[1:], *second[1:]]
            first, second = first[0], second[0]
        if self.return_sequences:
            axis = 0 if getattr(self.forward_layer, "time_major", False) else 1
            second = find("reverse")(second, [axis])
        result = self._joined(first, second)
        if not states:
            return result
        return [*(result if isinstance(result, list) else [result]), *states]

    def _joined(self, first: Tensor, second: Tensor) -> Any:
        ways: dict[str | None, Callable] = {
            "concat": lambda: find("concat")([first, second], -1),
            "sum": lambda: first + second,
            "ave": lambda: (first + second) / 2,
            "mul": lambda: first * second,
            None: lambda: [first, second],
        }
        return ways[self.merge_mode]()


def _described(layer: Any) -> dict[str, Any]:
    return {"class_name": type(layer).__name__, "config": layer.get_config()}


def _renamed(layer: Any, prefix: str, **changes: Any) -> Any:
    """A new layer like another."""
    return type(layer).from_config({**layer.get_config(), "name": prefix + layer.name, **changes})


def _check_opposite(forwards: Any, backwards: Any) -> None:
    if forwards.go_backwards == backwards.go_backwards:
        raise ValueError("Forward layer and backward layer should have different `go_backwards` value.")
    for what in ("stateful", "return_sequences", "return_state"):
        ways = [getattr(layer, what) for layer in (forwards, backwards)]
        if ways[0] != ways[1]:
            raise ValueError(
                f"Forward layer and backward layer are expected to have the same value for attribute {what}, got "
                f"{ways[0]} and {ways[1]}"
            )


class TimeDistributed(Wrapper):
    """Another layer, applied to each step of a sequence."""

    _passes_masks = True

    def build(self, input_shape: Any) -> None:  # type: ignore[override]
        """Makes the layer's variables, named by this one."""
        dims = TensorShape(input_shape)
        super().build(TensorShape([dims[0]]).concatenate(dims[2:]))

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Tensor:  # type: ignore[override]
        """Applies the layer to all steps of all examples at once."""
        sizes = find("shape")(inputs)
        flat = find("reshape")(inputs, find("concat")([[-1], sizes[2:]], 0))
        flat.set_shape([None, *inputs.shape.as_list()[2:]])
        takes = "training" in inspect.signature(self.layer.call).parameters
        output = self.layer(flat, **({"training": training} if takes else {}))
        rest = output.shape.as_list()[1:]
        result = find("reshape")(output, find("concat")([sizes[:2], find("shape")(output)[1:]], 0))
        result.set_shape([*inputs.shape.as_list()[:2], *rest])
        return result
