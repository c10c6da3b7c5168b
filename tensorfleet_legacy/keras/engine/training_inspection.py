"""Attributes of a compiled model that scripts read: its loss, its targets, its feeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


class Inspected:
    """The tensors of a compiled model, under the names that scripts know."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @property
    def run_eagerly(self) -> bool:
        """Whether layers run without a graph: never."""
        return False

    @property
    def total_loss(self) -> Any:
        """The loss that is trained: of all outputs, each by its weight, and of the layers."""
        if self._options is None:
            raise AttributeError("The model has no `total_loss` before it is compiled.")
        return self._made().total_loss

    @property
    def metrics_tensors(self) -> list:
        """The names of the values shown beside the loss."""
        return self._made().metrics_tensors

    @property
    def targets(self) -> list:
        """Where the true values of each output are fed."""
        return [e.target for e in self._made().trained]

    @property
    def sample_weights(self) -> list:
        """Where the weights of the examples are fed, for each output."""
        return [e.sample_weight for e in self._made().trained]

    @property
    def state_updates(self) -> list:
        """The operations that change what layers keep from batch to batch."""
        return [update for layer in self.layers if layer.stateful for update in layer.updates]

    @property
    def _feed_inputs(self) -> list:
        return self._input_tensors()

    @property
    def _feed_input_names(self) -> list[str]:
        return [name for name, _ in self._fed_inputs()]

    @property
    def _feed_targets(self) -> list:
        return [t for t in self.targets if t.op.type == "Placeholder"]

    @property
    def _feed_sample_weights(self) -> list:
        return self.sample_weights

    @property
    def _collected_trainable_weights(self) -> list:
        return list(self._made().weights)
