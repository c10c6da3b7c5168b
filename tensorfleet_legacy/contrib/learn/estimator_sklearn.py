"""The scikit-learn interface of `tf.contrib.learn`, and the interfaces that its estimators implement."""

from __future__ import annotations

import abc
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.graph import Graph
from tensorfleet_legacy.contrib.learn.estimator import Estimator


class NotFittedError(ValueError, AttributeError):
    """A model is used before it was trained."""


class Trainable(abc.ABC):
    """Something with `fit`."""

    @abc.abstractmethod
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: Any = None,
        batch_size: Any = None,
        monitors: Any = None,
        max_steps: Any = None,
    ) -> Any:
        """Trains on arrays or on an input function; gives itself."""


class Evaluable(abc.ABC):
    """Something with `evaluate`."""

    @property
    @abc.abstractmethod
    def model_dir(self) -> Any:
        """The folder of the checkpoints."""

    @abc.abstractmethod
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        feed_fn: Any = None,
        batch_size: Any = None,
        steps: Any = None,
        metrics: Any = None,
        name: Any = None,
        checkpoint_path: Any = None,
        hooks: Any = None,
    ) -> dict:
        """The metrics by name."""


Trainable.register(Estimator)
Evaluable.register(Estimator)


class SKCompat:
    """An estimator with the methods of scikit-learn: arrays in, arrays out."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int = 128,
        steps: int | None = None,
        max_steps: int | None = None,
        monitors: Any = None,
    ) -> SKCompat:
        """Trains on batches in random order."""
        self._estimator.fit(x, y, steps=steps, batch_size=batch_size, monitors=monitors, max_steps=max_steps)
        return self

    def score(
        self,
        x: Any,
        y: Any,
        batch_size: int = 128,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
    ) -> dict:
        """The model's metrics, and those of `metrics`, over all examples or `steps` batches."""
        if metrics is not None and not isinstance(metrics, dict):
            raise ValueError(f"Metrics argument should be None or dict. Got {metrics}.")
        return self._estimator.evaluate(x, y, batch_size=batch_size, steps=steps, metrics=metrics, name=name)

    def predict(self, x: Any, batch_size: int = 128, outputs: Any = None) -> Any:
        """The predictions of all examples as arrays, by name where the model has several."""
        # A ready-made model's own method gives one of its predictions only.
        return Estimator.predict(
            self._estimator, x, batch_size=batch_size, outputs=outputs, as_iterable=False
        )


def infer_real_valued_columns_from_input_fn(input_fn: Any) -> list:
    """Columns for all features that an input function gives, which must be dense numbers."""
    with Graph().as_default():
        features, _ = input_fn()
        return find("contrib.layers.infer_real_valued_columns")(features)
