"""An optimizer whose gradients are scaled down to a norm of them all."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.base.naming import find


class _ClippedOptimizer(Optimizer):
    """Another optimizer, whose gradients are scaled down to a norm of them all."""

    def __init__(self, optimizer: Any, clip_norm: float) -> None:
        super().__init__(False, f"ClipByNorm{optimizer.get_name()}")
        self._optimizer, self._clip_norm = optimizer, clip_norm

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        grads, variables = zip(*grads_and_vars, strict=True)
        clipped, _ = find("clip_by_global_norm")(list(grads), self._clip_norm)
        return self._optimizer.apply_gradients(list(zip(clipped, variables, strict=True)), global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self) -> list:
        """The variables of the optimizer inside."""
        return self._optimizer.variables()


def clip_gradients_by_norm(optimizer: Any, clip_norm: float) -> Optimizer:
    """An optimizer whose gradients are scaled down so that their norm together is at most `clip_norm`."""
    return _ClippedOptimizer(optimizer, clip_norm)
