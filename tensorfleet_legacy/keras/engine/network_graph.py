"""The layers of a model as a graph: in which order they are applied, and to what."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import nest
from tensorfleet_legacy.keras.engine.node import Call


def calls_behind(outputs: list) -> list[Call]:
    """The uses of layers that outputs come from, each after those it needs."""
    result: list[Call] = []
    seen: set[int] = set()

    def visit(tensor: Any) -> None:
        history = getattr(tensor, "_keras_history", None)
        if history is None or id(history[0]) in seen:
            return
        seen.add(id(history[0]))
        for before in nest.flatten(history[0].inputs):
            visit(before)
        result.append(history[0])

    for output in outputs:
        visit(output)
    return result


def check_connected(inputs: list, outputs: list) -> None:
    """ValueError when outputs come from an input that is none of a model's."""
    known = {id(t) for t in inputs}
    seen: set[int] = set()
    reached: list[str] = []
    waiting = [(t, None) for t in outputs]
    while waiting:
        tensor, layer = waiting.pop()
        if id(tensor) in known or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        history = getattr(tensor, "_keras_history", None)
        if history is not None:
            reached.append(history[0].layer.name)
            waiting += [(t, history[0].layer) for t in nest.flatten(history[0].inputs)]
        elif getattr(tensor, "_keras_input", None) is not None and tensor._keras_input.is_placeholder:
            name = tensor._keras_input.name if layer is None else layer.name
            raise ValueError(
                f'Graph disconnected: cannot obtain value for tensor {tensor} at layer "{name}". The following previous '
                f"layers were accessed without issue: {[n for n in reached if n != name]}"
            )


def layers_behind(inputs: list, outputs: list) -> list:
    """The layers of a model, those furthest from the outputs first; the inputs' own among them."""
    calls = calls_behind(outputs)
    order: dict[int, int] = {}
    layers: dict[int, Any] = {}

    def number(layer: Any) -> None:
        layers[id(layer)] = layer
        order.setdefault(id(layer), len(order))

    def visit(tensor: Any, done: set[int]) -> None:
        if id(tensor) in done:
            return
        done.add(id(tensor))
        history = getattr(tensor, "_keras_history", None)
        if history is None:
            if getattr(tensor, "_keras_input", None) is not None:
                number(tensor._keras_input)
            return
        number(history[0].layer)
        for before in nest.flatten(history[0].inputs):
            visit(before, done)

    reached: set[int] = set()
    for output in outputs:
        visit(output, reached)
    depth: dict[int, int] = {}
    of_call: dict[int, int] = {}
    for call in reversed(calls):
        here = max(of_call.get(id(call), 0), depth.get(id(call.layer), 0))
        depth[id(call.layer)] = of_call[id(call)] = here
        for before in nest.flatten(call.inputs):
            history = getattr(before, "_keras_history", None)
            if history is not None:
                of_call[id(history[0])] = max(of_call.get(id(history[0]), 0), here + 1)
            elif getattr(before, "_keras_input", None) is not None:
                place = id(before._keras_input)
                depth[place] = max(depth.get(place, 0), here + 1)
    for given in inputs:
        source = getattr(given, "_keras_input", None)
        if source is not None:
            number(source)
            depth.setdefault(id(source), 0)
    return sorted(layers.values(), key=lambda layer: (-depth.get(id(layer), 0), order[id(layer)]))


class Nodes:
    """The uses of layers inside one model, numbered for each layer as configurations write them."""

    def __init__(self, outputs: list) -> None:
        inside = {id(call) for call in calls_behind(outputs)}
        self._inside = inside
        self._numbers: dict[int, int] = {}
        for call in calls_behind(outputs):
            own = [c for c in call.layer._calls if id(c) in inside]
            self._numbers.update((id(c), i) for i, c in enumerate(own))

    def of(self, layer: Any) -> list[Call]:
        """The uses of a layer."""
        return [c for c in layer._calls if id(c) in self._inside]

    def place(self, tensor: Any) -> list:
        """Where a tensor comes from: the layer's name, which of its uses, which of its outputs."""
        history = getattr(tensor, "_keras_history", None)
        if history is None:
            source = getattr(tensor, "_keras_input", None)
            return [source.name if source is not None else tensor.op.name, 0, 0]
        call, place = history
        return [call.layer.name, self._numbers[id(call)], place]


def get_source_inputs(tensor: Any, layer: Any = None, node_index: int | None = None) -> list:
    """The inputs of models that a tensor is computed from."""
    if layer is not None and node_index:
        tensor = nest.flatten(layer.get_output_at(node_index))[0]
    if not hasattr(tensor, "_keras_history"):
        return [tensor]
    by_name: dict[int, Any] = {}

    def visit(one: Any) -> None:
        history = getattr(one, "_keras_history", None)
        if history is None:
            by_name.setdefault(id(one), one)
            return
        for before in nest.flatten(history[0].inputs):
            visit(before)

    visit(tensor)
    return list(by_name.values())


def convert_all_kernels_in_model(model: Any) -> None:
    """Turns the kernels of convolutions around: from what Theano convolves with to what TensorFlow does, and back."""
    from tensorfleet_legacy.keras import backend as state

    kinds = {"Conv1D", "Conv2D", "Conv3D", "Conv2DTranspose", "SeparableConv2D"}
    pairs = []
    for layer in model.layers:
        if type(layer).__name__ in kinds and hasattr(layer, "kernel"):
            kernel = state.get_value(layer.kernel)
            axes = tuple(range(kernel.ndim - 2))
            pairs.append((layer.kernel, np.flip(kernel, axes)))
    state.batch_set_value(pairs)
