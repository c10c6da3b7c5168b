"""`python.estimator.canned`: what last layers of one's own derive from, and what makes an optimizer of its name."""

from __future__ import annotations

import abc
from typing import Any

from tensorfleet_legacy.estimator.canned.dnn import optimizer_of


class _Head(abc.ABC):
    """The last layer of a model: what it is called, how many logits it wants, its loss, and what becomes of the model."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Its name."""

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> int:
        """The size of the last dimension of the logits."""

    @abc.abstractmethod
    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> Any:
        """The loss of logits."""

    @abc.abstractmethod
    def create_estimator_spec(self, features: Any, mode: str, logits: Any, *args: Any, **kwargs: Any) -> Any:
        """The result of a model function."""


def get_optimizer_instance(opt: Any, learning_rate: float | None = None) -> Any:
    """An optimizer as it is, or that of a name such as "Adagrad"."""
    if isinstance(opt, str) and learning_rate is None:
        raise ValueError("learning_rate must be specified when opt is string.")
    return optimizer_of(opt, learning_rate)  # type: ignore[arg-type]
