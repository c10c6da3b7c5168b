"""`tf.keras.Sequential` and `tf.keras.Model`: layers together, as one layer. A session trains them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tensorfleet import nest
from tensorfleet.graph.operation import Tensor
from tensorfleet.keras.base import Input, Layer

_TRAINING = """
    compile fit evaluate predict fit_generator evaluate_generator predict_generator train_on_batch test_on_batch
    predict_on_batch save load_weights save_weights
"""


class Model(Layer):
    """Layers as one: made from `inputs` and `outputs`, or by a subclass with layers among its attributes.

    It computes and has variables. To train, build a loss from what it gives and use `tf.train`.
    """

    def __init__(
        self, inputs: Any = None, outputs: Any = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        self._members: list[Layer] = []
        self._given, self._result = inputs, outputs
        if outputs is not None:
            self._members = _layers_behind(outputs)
            self.built = True

    def __getattr__(self, name: str) -> Any:
        if name in _TRAINING.split():
            raise AttributeError(
                f"TensorFleet's Keras models have no `{name}`: build a loss from the model's output, and train with "
                "tf.train in a session."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def layers(self) -> list[Layer]:
        """The layers, in the order they are applied."""
        own = [v for k, v in vars(self).items() if isinstance(v, Layer) and not k.startswith("_last")]
        return [*self._members, *(v for v in own if v not in self._members)]

    def _of_parts(self, what: str) -> list:
        seen: dict[int, Any] = {}
        for layer in self.layers:
            seen.update((id(v), v) for v in getattr(layer, what))
        return list(seen.values())

    @property
    def inputs(self) -> list:
        """The placeholders it was made with."""
        return nest.flatten(self._given)

    @property
    def outputs(self) -> list:
        """What it gives for them."""
        return nest.flatten(self._result)

    @property
    def input(self) -> Any:
        """The placeholder it was made with."""
        return self._given if self._given is not None else super().input

    @property
    def output(self) -> Any:
        """What it gives for it."""
        return self._result if self._result is not None else super().output

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """A layer by its name or its place."""
        if index is not None:
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name}")

    def call(self, inputs: Any, training: Any = None) -> Any:  # type: ignore[override]
        """Applies the layers to other inputs."""
        given = zip(nest.flatten(self._given), nest.flatten(inputs), strict=True)
        known = {id(old): new for old, new in given}
        return nest.map_structure(lambda t: _again(t, known, training), self._result)

    def summary(
        self, line_length: int | None = None, positions: Any = None, print_fn: Callable = print
    ) -> None:
        """Prints the layers with their numbers of parameters."""
        width = line_length or 65
        print_fn(f'Model: "{self.name}"')
        print_fn("=" * width)
        for layer in self.layers:
            print_fn(f"{f'{layer.name} ({type(layer).__name__})':<45}{layer.count_params():>{width - 45}}")
        print_fn("=" * width)
        print_fn(f"Total params: {self.count_params():,}")


class Sequential(Model):
    """Layers one after the other."""

    def __init__(self, layers: Any = None, name: str | None = None) -> None:
        super().__init__(name=name)
        for layer in layers or []:
            self.add(layer)

    def add(self, layer: Layer) -> None:
        """Puts a layer at the end; the first may say the shape of the input, and then all are made at once."""
        if not isinstance(layer, Layer):
            raise TypeError(f"The added layer must be an instance of class Layer. Found: {layer}")
        if not self._members and layer._batch_input_shape is not None:
            kind = getattr(layer, "_input_dtype", None)
            self._given = Input(batch_shape=layer._batch_input_shape, dtype=kind, name=f"{layer.name}_input")
            self._result = self._given
        self._members.append(layer)
        if self._result is not None:
            self._result = layer(self._result)
            self.built = True

    def pop(self) -> None:
        """Takes the last layer off."""
        if not self._members:
            raise TypeError("There are no layers in the model.")
        self._members.pop()
        if self._result is not None:
            self._result = self._members[-1].output if self._members else None

    def call(self, inputs: Any, training: Any = None) -> Any:  # type: ignore[override]
        """Applies all layers."""
        for layer in self._members:
            inputs = layer(inputs, **_mode(layer, training))
        return inputs


def _mode(layer: Layer, training: Any) -> dict[str, Any]:
    takes = "training" in inspect.signature(layer.call).parameters
    return {"training": training} if takes and training is not None else {}


def _again(tensor: Any, known: dict[int, Any], training: Any) -> Any:
    """A tensor of the model for other inputs."""
    if id(tensor) in known:
        return known[id(tensor)]
    history = getattr(tensor, "_keras_history", None)
    if history is None:
        if not isinstance(tensor, Tensor) or not hasattr(tensor, "_keras_history"):
            return tensor  # a constant of the graph
        raise ValueError(f"Graph disconnected: {tensor} is an input, and none of the model's.")
    layer, inputs, args, kwargs, place = history
    fed = nest.map_structure(lambda t: _again(t, known, training), inputs)
    options = {**kwargs, **_mode(layer, training)}
    made = nest.flatten(layer(fed, *args, **options))
    known[id(tensor)] = made[place]
    return made[place]


def _layers_behind(outputs: Any) -> list[Layer]:
    """The layers that outputs come from, in the order they are applied."""
    found: list[Layer] = []
    seen: set[int] = set()

    def visit(tensor: Any) -> None:
        history = getattr(tensor, "_keras_history", None)
        if history is None or id(tensor) in seen:
            return
        seen.add(id(tensor))
        for before in nest.flatten(history[1]):
            visit(before)
        if not any(history[0] is layer for layer in found):
            found.append(history[0])

    for output in nest.flatten(outputs):
        visit(output)
    return found
