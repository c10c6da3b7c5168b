"""Calls of a Keras layer: the inputs and outputs of each, at one or several places of a model."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import nest
from tensorfleet_legacy.keras import backend as state


class Call:
    """One use of a layer on tensors that `Input` or other layers gave."""

    __slots__ = ("args", "inputs", "kwargs", "layer", "outputs")

    def __init__(self, layer: Any, inputs: Any, args: tuple, kwargs: dict, outputs: Any) -> None:
        self.layer, self.inputs, self.args, self.kwargs = layer, inputs, args, kwargs
        self.outputs = outputs

    def __deepcopy__(self, memo: dict) -> Call:
        return self  # tensors are not copied with a layer

    # As Keras names them.

    @property
    def outbound_layer(self) -> Any:
        """The layer that is applied."""
        return self.layer

    @property
    def inbound_layers(self) -> Any:
        """The layers that give what it is applied to."""
        items = [_giver(t) for t in nest.flatten(self.inputs)]
        return items[0] if len(items) == 1 else items

    @property
    def input_tensors(self) -> Any:
        """The layer's inputs."""
        return self.inputs

    @property
    def output_tensors(self) -> Any:
        """The layer's outputs."""
        return self.outputs


Node = Call  # its name in Keras


def _giver(tensor: Any) -> Any:
    history = getattr(tensor, "_keras_history", None)
    return history[0].layer if history is not None else getattr(tensor, "_keras_input", None)


class Connected:
    """The uses of a layer."""

    name: str
    _calls: list[Call]
    # The last use, also one that no model knows of.
    _last: Call | None = None

    @property
    def _uses(self) -> list[Call]:
        return self._calls or ([] if self._last is None else [self._last])

    @property
    def inbound_nodes(self) -> list[Call]:
        """The uses of this layer."""
        return list(self._uses)

    _inbound_nodes = inbound_nodes

    @property
    def outbound_nodes(self) -> list[Call]:
        """The uses of other layers that are applied to what this one gives."""
        result = {id(t) for use in self._uses for t in nest.flatten(use.outputs)}
        graph = self.__dict__.get("_graph")
        every = [] if graph is None else graph.__dict__.get("_keras_calls", [])
        return [c for c in every if any(id(t) in result for t in nest.flatten(c.inputs))]

    _outbound_nodes = outbound_nodes

    def _only(self, what: str, none: str) -> Call:
        uses = self._uses
        if not uses:
            raise AttributeError(none)
        if len(uses) > 1:
            raise AttributeError(
                f'Layer {self.name} has multiple inbound nodes, hence the notion of "layer {what}" is ill-defined. Use '
                f"`get_{what.replace(' ', '_')}_at(node_index)` instead."
            )
        return uses[0]

    @property
    def input(self) -> Any:
        """The layer's input, if it is called once."""
        return self._only("input", f"Layer {self.name} is not connected, no input to return.").inputs

    @property
    def output(self) -> Any:
        """The layer's outputs."""
        return self._only("output", f"Layer {self.name} has no inbound nodes.").outputs

    @property
    def input_shape(self) -> Any:
        """The shape of what it is applied to; of any of them, if all are the same."""
        return self._same_shape("input")

    @property
    def output_shape(self) -> Any:
        """The shape of what that gives; of any of them, if all are the same."""
        return self._same_shape("output")

    def _same_shape(self, what: str) -> Any:
        shapes = [nest.map_structure(state.int_shape, getattr(use, f"{what}s")) for use in self._uses]
        if not shapes:
            raise AttributeError(f"The layer has never been called and thus has no defined {what} shape.")
        if any(shape != shapes[0] for shape in shapes):
            raise AttributeError(
                f'The layer "{self.name}" has multiple inbound nodes, with different {what} shapes. Hence the notion of '
                f'"{what} shape" is ill-defined for the layer. Use `get_{what}_shape_at(node_index)` instead.'
            )
        return shapes[0]

    @property
    def input_mask(self) -> Any:
        """The mask of what it is applied to."""
        return nest.map_structure(_mask, self._only("input mask", _no_mask(self.name, "input")).inputs)

    @property
    def output_mask(self) -> Any:
        """The mask of what that gives."""
        return nest.map_structure(_mask, self._only("output mask", _no_mask(self.name, "output")).outputs)

    def _use(self, number: int, what: str) -> Call:
        uses = self._uses
        if not uses:
            raise RuntimeError(f"The layer has never been called and thus has no defined {what}.")
        if not number < len(uses):
            raise ValueError(
                f"Asked to get {what} at node {number}, but the layer has only {len(uses)} inbound nodes."
            )
        return uses[number]

    def get_input_at(self, node_index: int) -> Any:
        """The layer's input in one of its calls."""
        return self._use(node_index, "input").inputs

    def get_output_at(self, node_index: int) -> Any:
        """The layer's output in one of its calls."""
        return self._use(node_index, "output").outputs

    def get_input_shape_at(self, node_index: int) -> Any:
        """The shape of what it is applied to in one of its uses."""
        return nest.map_structure(state.int_shape, self._use(node_index, "input shape").inputs)

    def get_output_shape_at(self, node_index: int) -> Any:
        """The shape of what one of its uses gives."""
        return nest.map_structure(state.int_shape, self._use(node_index, "output shape").outputs)

    def get_input_mask_at(self, node_index: int) -> Any:
        """The mask of what it is applied to in one of its uses."""
        return nest.map_structure(_mask, self._use(node_index, "input mask").inputs)

    def get_output_mask_at(self, node_index: int) -> Any:
        """The mask of what one of its uses gives."""
        return nest.map_structure(_mask, self._use(node_index, "output mask").outputs)


def _mask(tensor: Any) -> Any:
    return getattr(tensor, "_keras_mask", None)


def _no_mask(name: str, what: str) -> str:
    return f"Layer {name} has multiple inbound nodes or none; no {what} mask to return."
