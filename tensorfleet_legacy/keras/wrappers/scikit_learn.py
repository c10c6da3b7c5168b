"""`tf.keras.wrappers.scikit_learn`: models as scikit-learn's estimators."""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet_legacy.keras.engine.network import Model, Sequential
from tensorfleet_legacy.keras.utils.np_utils import to_categorical


class BaseWrapper:
    """A function that makes a compiled model, with arguments for it and for `fit`, `predict` and `score`."""

    model: Any

    def __init__(self, build_fn: Any = None, **sk_params: Any) -> None:
        self.build_fn, self.sk_params = build_fn, sk_params
        self.check_params(sk_params)

    def _builder(self) -> Callable:
        """The function that makes the model: the one given, an object's `__call__`, or that of a subclass."""
        if self.build_fn is None:
            return getattr(self, "__call__")  # noqa: B004, B009 - a subclass defines it
        if isinstance(self.build_fn, (types.FunctionType, types.MethodType)):
            return self.build_fn
        return self.build_fn.__call__

    def check_params(self, params: dict[str, Any]) -> None:
        """ValueError for an argument that nothing takes."""
        takers: list[Callable] = [
            Sequential.fit,
            Sequential.predict,
            Sequential.predict_classes,
            Model.evaluate,
        ]
        known = [_arguments(taker) for taker in (*takers, self._builder())]
        for name in params:
            if name != "nb_epoch" and not any(name in names or "**" in names for names in known):
                raise ValueError(f"{name} is not a legal parameter")

    def get_params(self, **params: Any) -> dict[str, Any]:
        """The arguments, as scikit-learn copies them."""
        return {**copy.deepcopy(self.sk_params), "build_fn": self.build_fn}

    def set_params(self, **params: Any) -> BaseWrapper:
        """Changes arguments."""
        self.check_params(params)
        self.sk_params.update(params)
        return self

    def fit(self, x: Any, y: Any, **kwargs: Any) -> Any:
        """Makes a model and trains it."""
        self.model = self._builder()(**self.filter_sk_params(self._builder()))
        loss = getattr(self.model.loss, "__name__", self.model.loss)
        if loss == "categorical_crossentropy" and np.ndim(y) != 2:
            y = to_categorical(y)
        return self.model.fit(x, y, **{**copy.deepcopy(self.filter_sk_params(Sequential.fit)), **kwargs})

    def filter_sk_params(self, fn: Callable, override: dict[str, Any] | None = None) -> dict[str, Any]:
        """The arguments that a function takes."""
        names = _arguments(fn)
        by_name = {key: value for key, value in self.sk_params.items() if key in names}
        return {**by_name, **(override or {})}


def _arguments(function: Callable) -> set[str]:
    """The names of arguments; "**" for any."""
    parameters = inspect.signature(function).parameters.values()
    named = {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
    own = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return named | ({"**"} if own and function is not Sequential.fit else set())


class KerasClassifier(BaseWrapper):
    """A model that tells classes apart."""

    classes_: np.ndarray
    n_classes_: int

    def fit(self, x: Any, y: Any, **kwargs: Any) -> Any:
        """Makes a model and trains it on classes: their names, or rows with a single one."""
        y = np.array(y)
        if y.ndim == 2 and y.shape[1] > 1:
            self.classes_ = np.arange(y.shape[1])
        elif y.ndim == 1 or (y.ndim == 2 and y.shape[1] == 1):
            self.classes_ = np.unique(y)
            y = np.searchsorted(self.classes_, y)
        else:
            raise ValueError(f"Invalid shape for y: {y.shape}")
        self.n_classes_ = len(self.classes_)
        return super().fit(x, y, **kwargs)

    def predict(self, x: Any, **kwargs: Any) -> Any:
        """The class of each example."""
        given = self.filter_sk_params(Sequential.predict_classes, kwargs)
        return self.classes_[self.model.predict_classes(x, **given)]

    def predict_proba(self, x: Any, **kwargs: Any) -> Any:
        """The probabilities of classes; two of them where the model gives one."""
        predictions = self.model.predict_proba(x, **self.filter_sk_params(Sequential.predict_classes, kwargs))
        return np.hstack([1 - predictions, predictions]) if predictions.shape[1] == 1 else predictions

    def score(self, x: Any, y: Any, **kwargs: Any) -> float:
        """The share of right answers."""
        y = np.searchsorted(self.classes_, y)
        loss = getattr(self.model.loss, "__name__", self.model.loss)
        if loss == "categorical_crossentropy" and np.ndim(y) != 2:
            y = to_categorical(y)
        values = self.model.evaluate(x, y, **self.filter_sk_params(Model.evaluate, kwargs))
        values = values if isinstance(values, list) else [values]
        for name, value in zip(self.model.metrics_names, values, strict=True):
            if name in ("accuracy", "acc"):
                return value
        raise ValueError(
            "The model is not configured to compute accuracy. You should pass `metrics=['accuracy']` to the "
            "`model.compile()` method."
        )


class KerasRegressor(BaseWrapper):
    """A model that tells numbers."""

    def predict(self, x: Any, **kwargs: Any) -> Any:
        """The number of each example."""
        return np.squeeze(self.model.predict(x, **self.filter_sk_params(Sequential.predict, kwargs)))

    def score(self, x: Any, y: Any, **kwargs: Any) -> float:
        """Less the loss."""
        loss = self.model.evaluate(x, y, **self.filter_sk_params(Model.evaluate, kwargs))
        return -loss[0] if isinstance(loss, list) else -loss
