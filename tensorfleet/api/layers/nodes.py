"""What Keras layers know of the layers they are connected to. Layers used as functions are connected to none."""

from __future__ import annotations

from typing import Any, NoReturn


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

    @property
    def input(self) -> NoReturn:
        """Known only inside a Keras model."""
        raise AttributeError(f"Layer {self.name} is not connected, no input to return.")

    @property
    def output(self) -> NoReturn:
        """Known only inside a Keras model."""
        raise AttributeError(f"Layer {self.name} has no inbound nodes.")

    @property
    def input_shape(self) -> NoReturn:
        """Known only inside a Keras model."""
        raise AttributeError("The layer has never been called and thus has no defined input shape.")

    @property
    def output_shape(self) -> NoReturn:
        """Known only inside a Keras model."""
        raise AttributeError("The layer has never been called and thus has no defined output shape.")

    @property
    def input_mask(self) -> NoReturn:
        """Known only inside a Keras model."""
        raise AttributeError(
            f"Layer {self.name} has multiple inbound nodes or none; no input mask to return."
        )

    @property
    def output_mask(self) -> NoReturn:
        """Known only inside a Keras model."""
        raise AttributeError(
            f"Layer {self.name} has multiple inbound nodes or none; no output mask to return."
        )

    def _no_node(self, what: str) -> NoReturn:
        raise RuntimeError(f"The layer has never been called and thus has no defined {what}.")

    def get_input_at(self, node_index: int) -> NoReturn:
        """Known only inside a Keras model."""
        self._no_node("input")

    def get_output_at(self, node_index: int) -> NoReturn:
        """Known only inside a Keras model."""
        self._no_node("output")

    def get_input_shape_at(self, node_index: int) -> NoReturn:
        """Known only inside a Keras model."""
        self._no_node("input shape")

    def get_output_shape_at(self, node_index: int) -> NoReturn:
        """Known only inside a Keras model."""
        self._no_node("output shape")

    def get_input_mask_at(self, node_index: int) -> NoReturn:
        """Known only inside a Keras model."""
        self._no_node("input mask")

    def get_output_mask_at(self, node_index: int) -> NoReturn:
        """Known only inside a Keras model."""
        self._no_node("output mask")
