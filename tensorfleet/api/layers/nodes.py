"""The connections of Keras layers to other layers. Layers used as functions are connected to none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

_DOC = "Known only inside a Keras model."


def _absent(message: str) -> property:
    """A property that a layer outside of Keras models does not have; `message` says why."""

    def refuse(self: Unconnected) -> NoReturn:
        raise AttributeError(message.format(name=self.name))

    return property(refuse, doc=_DOC)


def _no_node(what: str) -> Callable[[Unconnected, int], Any]:
    """A method that asks for a connection by its number: there is none."""

    def refuse(self: Unconnected, node_index: int) -> NoReturn:
        raise RuntimeError(f"The layer has never been called and thus has no defined {what}.")

    refuse.__doc__ = _DOC
    return refuse


class Unconnected:
    """The connections of a layer, as TensorFlow answers for layers that were never part of a Keras model."""

    @property
    def name(self) -> str:
        """The layer's name."""
        raise AttributeError("given by the layer")

    @property
    def inbound_nodes(self) -> list[Any]:
        """The connections to layers before it: none."""
        return []

    @property
    def outbound_nodes(self) -> list[Any]:
        """The connections to layers after it: none."""
        return []

    input = _absent("Layer {name} is not connected, no input to return.")
    output = _absent("Layer {name} has no inbound nodes.")
    input_shape = _absent("The layer has never been called and thus has no defined input shape.")
    output_shape = _absent("The layer has never been called and thus has no defined output shape.")
    input_mask = _absent("Layer {name} has multiple inbound nodes or none; no input mask to return.")
    output_mask = _absent("Layer {name} has multiple inbound nodes or none; no output mask to return.")

    get_input_at, get_output_at = _no_node("input"), _no_node("output")
    get_input_shape_at, get_output_shape_at = _no_node("input shape"), _no_node("output shape")
    get_input_mask_at, get_output_mask_at = _no_node("input mask"), _no_node("output mask")
