"""`tf.keras.Sequential` and `tf.keras.Model`: layers together, as one layer that can be trained."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.api.layers.helpers import depending
from tensorfleet.base import dtypes, nest
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.engine.base_layer import Input, InputLayer, Layer
from tensorfleet_legacy.keras.engine.base_layer_operations import connect
from tensorfleet_legacy.keras.engine.network_graph import check_connected, layers_behind
from tensorfleet_legacy.keras.engine.node import Call
from tensorfleet_legacy.keras.engine.training import Trained
from tensorfleet_legacy.keras.saving.save import Saved

_OWN = ("_layers", "_given", "_result", "_compiled", "_options", "_losses")


class Model(Trained, Saved, Layer):
    """Layers as one: made from `inputs` and `outputs`, or by a subclass with layers among its attributes."""

    _untracked = Layer._untracked | {"_compile_metrics", "_options", "_given", "_result"}

    def __init__(
        self, inputs: Any = None, outputs: Any = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        self._layers: list[Layer] = []
        self._given, self._result = inputs, outputs
        self._shown_names: list[str] | None = None
        if outputs is not None:
            self._check_inputs()
            connect(self.outputs)
            check_connected(self.inputs, self.outputs)
            self._layers = layers_behind(self.inputs, self.outputs)
            self.built = True

    def _check_inputs(self) -> None:
        for tensor in self.inputs:
            if not hasattr(tensor, "_keras_history") and not hasattr(tensor, "_keras_input"):
                raise ValueError(
                    f"Input tensors to a {type(self).__name__} must come from `tf.keras.Input`. Received: {tensor} "
                    "(missing previous layer metadata)."
                )

    @property
    def layers(self) -> list[Layer]:
        """The layers, in the order they are applied."""
        held = [v for k, v in vars(self).items() if k not in _OWN for v in _layers_in(v)]
        by_name = {id(layer): layer for layer in (*self._layers, *held)}
        return list(by_name.values())

    def _of_parts(self, what: str) -> list:
        seen: dict[int, Any] = {}
        for layer in self.layers:
            values = layer._metrics if what == "metrics" else getattr(layer, what)
            seen.update((id(v), v) for v in values)
        own = {id(v) for v in (*self._trainable_weights, *self._non_trainable_weights)}
        return [v for k, v in seen.items() if k not in own]

    @property
    def weights(self) -> list:
        """All variables, layer by layer."""
        own = [*self._trainable_weights, *self._non_trainable_weights]
        results = [*(v for layer in self.layers for v in layer.weights), *own]
        return list({id(v): v for v in results}.values())

    # -- inputs and outputs --------------------------------------------------------------------------

    @property
    def inputs(self) -> list:
        """The placeholders it was made with."""
        return [] if self._given is None else nest.flatten(self._given)

    @property
    def outputs(self) -> list:
        """The network's outputs."""
        return [] if self._result is None else nest.flatten(self._result)

    @property
    def input(self) -> Any:
        """The placeholder it was made with."""
        return self._given if self._given is not None else super().input

    @property
    def output(self) -> Any:
        """The network's output."""
        return self._result if self._result is not None else super().output

    @property
    def _uses(self) -> list[Call]:
        """Its own inputs and outputs, then where it was applied to others."""
        own = [] if self._result is None else [Call(self, self._given, (), {}, self._result)]
        return [*own, *(self._calls or super()._uses)]

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, as dictionaries of data have them."""
        return [_input_name(t) for t in self.inputs]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, as dictionaries of data have them: those of the layers that give them."""
        if self._shown_names is not None:
            return self._shown_names
        names: list[str] = []
        for tensor in self.outputs:
            history = getattr(tensor, "_keras_history", None)
            name = _input_name(tensor) if history is None else history[0].layer.name
            same = sum(n == name or n.rpartition("_")[0] == name for n in names)
            names.append(f"{name}_{same}" if name in names else name)
        return names

    def _input_tensors(self) -> list:
        return [t for t in self.inputs if not isinstance(t, Tensor) or t.op.type == "Placeholder"]

    def _fed_inputs(self) -> list[tuple[str, Any]]:
        """The names and shapes of the inputs that data are fed to."""
        fed = self._input_tensors()
        shapes = [None if t.shape.ndims is None else t.shape.as_list() for t in fed]
        return [(_input_name(t), s) for t, s in zip(fed, shapes, strict=True)]

    def _ensure_inputs(self, x: Any) -> None:
        """Makes the inputs of a model that has none yet, of the shapes of the data."""
        if self.outputs:
            return
        arrays = list(x.values()) if isinstance(x, dict) else list(x) if isinstance(x, (list, tuple)) else [x]
        if isinstance(x, (list, tuple)) and arrays and np.ndim(arrays[0]) == 0:
            arrays = [np.asarray(x)]
        names = list(x) if isinstance(x, dict) else [None] * len(arrays)
        items = [_placeholder_for(np.asarray(a), name) for a, name in zip(arrays, names, strict=True)]
        inputs: Any = dict(zip(x, items, strict=True)) if isinstance(x, dict) else items
        self._set_inputs(inputs if isinstance(x, dict) or len(items) > 1 else items[0])

    def _set_inputs(self, inputs: Any) -> None:
        outputs = self(inputs, **_mode(self, state.learning_phase()))
        self._given, self._result = inputs, outputs
        self._shown_names = [f"output_{i + 1}" for i in range(len(nest.flatten(outputs)))]

    def build(self, input_shape: Any) -> None:
        """Makes the variables, for inputs of this shape."""
        if self.built or type(self).call is Model.call:
            self.built = True
            return
        if inspect.currentframe() is not None and self._building:
            return
        self._building = True
        try:
            shapes = input_shape if isinstance(input_shape, list) else [input_shape]
            items = [Input(batch_shape=tuple(_dims(s))) for s in shapes]
            self(items if isinstance(input_shape, list) else items[0])
        finally:
            self._building = False

    _building = False

    def _first_call(self, inputs: Any, flat: list) -> None:
        """The variables of a model are those of its layers, made as it calls them."""
        self.built = True

    # -- parts ---------------------------------------------------------------------------------------

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """A layer by its name or its place."""
        if index is not None:
            if index >= len(self.layers):
                raise ValueError(
                    f"Was asked to retrieve layer at index {index} but model only has {len(self.layers)} layers."
                )
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name}")

    def _losses_to_train(self) -> list:
        mine = self.losses
        wanted = {id(t) for t in [*depending(mine, None), *depending(mine, self.inputs)]}
        return [t for t in mine if id(t) in wanted]

    def _updates_to_run(self) -> list:
        mine = self.updates
        wanted = {id(t) for t in [*depending(mine, None), *depending(mine, self.inputs)]}
        return [t for t in mine if id(t) in wanted]

    def _metrics_of_layers(self) -> list[tuple[Any, str]]:
        results = [*self._metrics, *self._of_parts("metrics")]
        return [(m, m.name) for m in results]

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:  # type: ignore[override]
        """Applies the layers to other inputs."""
        given = zip(nest.flatten(self._given), nest.flatten(inputs), strict=True)
        known = {id(old): new for old, new in given}
        return nest.map_structure(lambda t: _again(t, known, training), self._result)

    def compute_mask(self, inputs: Any, mask: Any) -> Any:  # type: ignore[override]
        """The masks of what the layers give."""
        output = self.call(inputs, mask=mask) if self.outputs else None
        return nest.map_structure(lambda t: getattr(t, "_keras_mask", None), output)

    def _end_call(self, inputs: Any, masks: Any, outputs: Any) -> None:
        """The layers have marked what they give."""

    def summary(
        self, line_length: int | None = None, positions: Any = None, print_fn: Callable | None = None
    ) -> None:
        """Prints the layers with the shapes they give and their numbers of parameters."""
        from tensorfleet_legacy.keras.utils.layer_utils import print_summary

        if not self.built:
            raise ValueError(
                "This model has not yet been built. Build the model first by calling `build()` or calling `fit()` with "
                "some data, or specify an `input_shape` argument in the first layer(s) for automatic build."
            )
        print_summary(self, line_length, positions, print_fn or print)

    @property
    def stateful(self) -> bool:
        """Whether one of its layers keeps something from batch to batch."""
        return any(layer.stateful for layer in self.layers)

    @stateful.setter
    def stateful(self, value: bool) -> None:
        """Has no effect: the layers decide."""

    def reset_states(self) -> None:
        """Resets the states of layers that keep them from batch to batch."""
        for layer in self.layers:
            if getattr(layer, "stateful", False) and hasattr(layer, "reset_states"):
                layer.reset_states()


class Sequential(Model):
    """Layers one after the other."""

    def __init__(self, layers: Any = None, name: str | None = None) -> None:
        super().__init__(name=name)
        for layer in layers or []:
            self.add(layer)

    @property
    def layers(self) -> list[Layer]:
        return list(self._layers)

    def add(self, layer: Any) -> None:
        """Puts a layer at the end; the first may say the shape of the input, and then all are made at once.

        A tensor that `Input` gave stands for its layer.
        """
        layer = getattr(layer, "_keras_input", layer)
        if not isinstance(layer, Layer):
            raise TypeError(f"The added layer must be an instance of class Layer. Found: {layer}")
        if not self._layers and self._given is None:
            if isinstance(layer, InputLayer):
                self._given = self._result = layer.output
                return
            dims, kind = layer._batch_input_shape, _input_type(layer)
            if dims is None and isinstance(layer, Model) and layer.inputs:
                dims, kind = tuple(layer.inputs[0].shape.as_list()), layer.inputs[0].dtype.base_dtype.name
            if dims is not None:
                self._given = Input(batch_shape=dims, dtype=kind, name=f"{layer.name}_input")
                self._result = self._given
        self._layers.append(layer)
        self._compiled = None
        if self._result is not None:
            self._result = layer(self._result)
            self.built = True

    def pop(self) -> None:
        """Takes the last layer off."""
        if not self._layers:
            raise TypeError("There are no layers in the model.")
        self._layers.pop()
        self._compiled = None
        if self._result is not None:
            self._result = self._layers[-1].output if self._layers else None

    def build(self, input_shape: Any = None) -> None:
        if self._result is None and input_shape is not None:
            kind = _input_type(self._layers[0]) if self._layers else None
            self._set_inputs(Input(batch_shape=tuple(_dims(input_shape)), dtype=kind))
        self.built = True

    def _set_inputs(self, inputs: Any) -> None:
        outputs = inputs
        with name_scope(self.name):
            for layer in self._layers:
                outputs = layer(outputs)
        self._given, self._result, self.built = inputs, outputs, True

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:  # type: ignore[override]
        """Applies all layers."""
        for layer in self._layers:
            inputs = layer(inputs, **_mode(layer, training))
        return inputs

    def predict_classes(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """The most probable class of each example."""
        predictions = self.predict(x, batch_size=batch_size, verbose=verbose)
        return predictions.argmax(-1) if predictions.shape[-1] > 1 else (predictions > 0.5).astype("int32")

    def predict_proba(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """The probabilities: what `predict` gives."""
        return self.predict(x, batch_size=batch_size, verbose=verbose)


def _input_type(layer: Layer) -> Any:
    return getattr(layer, "_input_dtype", None) or layer.dtype


def _layers_in(value: Any) -> list[Layer]:
    if isinstance(value, Layer):
        return [value]
    if isinstance(value, (list, tuple)):
        return [layer for item in value for layer in _layers_in(item)]
    return [layer for item in value.values() for layer in _layers_in(item)] if isinstance(value, dict) else []


def _input_name(tensor: Any) -> str:
    source = getattr(tensor, "_keras_input", None)
    return source.name if source is not None else tensor.op.name


def _dims(shape: Any) -> list:
    return shape.as_list() if hasattr(shape, "as_list") else list(shape)


def _placeholder_for(array: np.ndarray, name: str | None) -> Any:
    kind = dtypes.as_dtype(array.dtype)
    dims = (None, *array.shape[1:]) if array.ndim > 1 else (None, 1)
    return Input(batch_shape=dims, dtype=state.floatx() if kind.is_floating else kind, name=name)


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
    call, _ = history
    fed = nest.map_structure(lambda t: _again(t, known, training), call.inputs)
    result = call.layer(fed, *call.args, **{**call.kwargs, **_mode(call.layer, training)})
    for old, new in zip(nest.flatten(call.outputs), nest.flatten(result), strict=True):
        known[id(old)] = new
    return known[id(tensor)]
