"""`tf.contrib.learn.Estimator` and its ready-made relatives: `tf.estimator` with the methods of before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tensorfleet.api.losses.losses import Reduction
from tensorfleet.base import nest
from tensorfleet.base.arguments import signature_of, taking
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.basic import placeholder
from tensorfleet_legacy.contrib.learn.model_fn import receiver_of, spec_of
from tensorfleet_legacy.contrib.learn.monitors import replace_monitors_with_hooks
from tensorfleet_legacy.contrib.learn.run_config import RunConfig
from tensorfleet_legacy.estimator.canned import dnn_linear_combined as canned
from tensorfleet_legacy.estimator.canned.dnn import DNN_RATE, LINEAR_RATE, optimizer_of
from tensorfleet_legacy.estimator.estimator import Estimator as CoreEstimator
from tensorfleet_legacy.estimator.export_output import DEFAULT_KEY
from tensorfleet_legacy.estimator.extenders_clip_gradients import clip_gradients_by_norm
from tensorfleet_legacy.estimator.model_fn import ModeKeys
from tensorfleet_legacy.estimator.numpy_io import numpy_input_fn
from tensorfleet_legacy.internals.util.tf_decorator import fn_args

_MEAN = Reduction.SUM_OVER_BATCH_SIZE


class Estimator:
    """A model of a function `model_fn(features, labels, mode, params)`, which gives `ModelFnOps` or (predictions, loss,
    train_op)."""

    def __init__(
        self,
        model_fn: Any = None,
        model_dir: Any = None,
        config: Any = None,
        params: Any = None,
        feature_engineering_fn: Callable | None = None,
    ) -> None:
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        self._user_model_fn = model_fn
        self._engineer = feature_engineering_fn
        self._metrics: Any = None
        self._default_output: str | None = None
        self._label_kinds: Any = None  # of a training or an evaluation, for models that always want labels
        config = RunConfig() if config is None else config
        self._core = CoreEstimator(self._build, model_dir, config, params={} if params is None else params)

    def _build(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        if labels is not None and all(isinstance(atom, Tensor) for atom in nest.flatten(labels)):
            self._label_kinds = nest.map_structure(lambda t: partial(placeholder, t.dtype, t.shape), labels)
        elif mode == ModeKeys.PREDICT and self._label_kinds is not None:
            labels = nest.map_structure(lambda make: make(), self._label_kinds)
        if self._engineer is not None:
            features, labels = self._engineer(features, labels)
        asked = fn_args(self._user_model_fn)
        given = {"mode": mode, "params": params, "config": config, "model_dir": self.model_dir}
        known = {name: value for name, value in given.items() if name in asked}
        result = spec_of(
            self._user_model_fn(features, labels, **known), mode, features, labels, self._metrics
        )
        outputs = result.export_outputs
        if self._default_output is not None and outputs and self._default_output in outputs:
            result = result._replace(export_outputs={**outputs, DEFAULT_KEY: outputs[self._default_output]})
        return result

    model_dir = readonly("_core.model_dir", "The folder of the checkpoints.")
    config = readonly("_core.config", "The settings of the run.")
    params = readonly("_core.params", "A copy of what the model function gets as `params`.")

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the latest checkpoint."""
        return self._core.get_variable_names()

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the latest checkpoint."""
        return self._core.get_variable_value(name)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Any = None,
        max_steps: int | None = None,
    ) -> Any:
        """Trains on arrays or on an input function."""
        function = self._input(x, y, input_fn, batch_size, None, shuffle=True)
        hooks = replace_monitors_with_hooks(monitors, self)
        self._core.train(function, hooks=hooks, steps=steps, max_steps=max_steps)
        return self

    def partial_fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: int | None = 1,
        batch_size: int | None = None,
        monitors: Any = None,
    ) -> Any:
        """Trains on: one step, unless more are asked for."""
        return self.fit(x, y, input_fn, steps, batch_size, monitors)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Any = None,
        log_progress: bool = True,
    ) -> dict:
        """The model's metrics, and those of `metrics`: a dictionary of `MetricSpec`s, or of functions of predictions and
        labels."""
        function = self._input(x, y, input_fn, batch_size, 1, shuffle=False)
        all_hooks = [*(hooks or ()), *([find("train.FeedFnHook")(feed_fn)] if feed_fn else ())]
        self._metrics = metrics
        try:
            return self._core.evaluate(function, steps, all_hooks, checkpoint_path, name)
        finally:
            self._metrics = None

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Any = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The predictions, one after the other, or all at once with `as_iterable=False`."""
        function = self._input(x, None, input_fn, batch_size, 1, shuffle=False)
        predictions = self._core.predict(
            function, outputs, yield_single_examples=as_iterable and not iterate_batches
        )
        return predictions if as_iterable else _joined(list(predictions))

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_fn: Callable,
        default_output_alternative_key: str | None = None,
        assets_extra: dict | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        graph_rewrite_specs: Any = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Writes the model as a SavedModel to a new folder, named by the time, under `export_dir_base`; gives its path."""
        if graph_rewrite_specs is not None:
            raise ValueError("graph_rewrite_specs are not supported: the graph is exported as it is built.")
        self._default_output = default_output_alternative_key
        try:
            return self._core.export_savedmodel(
                export_dir_base,
                lambda: receiver_of(serving_input_fn()),
                assets_extra,
                as_text,
                checkpoint_path,
                strip_default_attrs,
            )
        finally:
            self._default_output = None

    def _input(
        self, x: Any, y: Any, input_fn: Any, batch_size: int | None, epochs: int | None, shuffle: bool
    ) -> Callable:
        if input_fn is not None:
            if x is not None or y is not None:
                raise ValueError("Can not provide both input_fn and x or y.")
            return input_fn
        if x is None:
            raise ValueError("Either x or input_fn must be provided.")
        arrays = (
            {k: np.asarray(v) for k, v in x.items()} if isinstance(x, dict) else self._named(np.asarray(x))
        )
        labels = y if y is None or isinstance(y, dict) else np.asarray(y)
        size = len(next(iter(arrays.values()))) if isinstance(arrays, dict) else len(arrays)
        return numpy_input_fn(arrays, labels, batch_size or size, epochs, shuffle)

    def _named(self, x: np.ndarray) -> Any:
        return x


def _joined(batches: list) -> Any:
    if batches and isinstance(batches[0], dict):
        return {key: np.concatenate([b[key] for b in batches]) for key in batches[0]}
    return np.concatenate(batches)


def _clipped(given: dict[str, Any], norm: float) -> dict[str, Callable]:
    """The optimizers of a ready-made model with their gradients clipped; the usual ones where none is given."""

    def make(name: str) -> Callable:
        deep = name.startswith("dnn") or "hidden_units" in given
        columns = given.get("linear_feature_columns") or given.get("feature_columns") or ()
        rate = DNN_RATE if deep else min(LINEAR_RATE, 1.0 / max(len(list(columns)), 1) ** 0.5)
        chosen = given[name] or ("Adagrad" if deep else "Ftrl")
        return lambda: clip_gradients_by_norm(optimizer_of(chosen, rate), norm)

    return {name: make(name) for name in given if name.endswith("optimizer")}


class _Canned(Estimator):
    """A ready-made model; an array of features is the column named ""."""

    _kind: Any
    _one_of: str  # which prediction `predict` gives
    _unsupported = ("embedding_lr_multipliers", "input_layer_min_slice_size")
    _switches = ("enable_centered_bias", "_joint_weight", "_joint_weights", "_joint_linear_weights")

    def _make(self, given: dict[str, Any]) -> None:
        """Makes the estimator of `tf.estimator` from the arguments that both have."""
        for name in self._unsupported:
            if given.pop(name, None) is not None:
                raise ValueError(f"{name} is not supported: leave it out, or write a model_fn that does it.")
        for name in self._switches:
            if given.pop(name, False):
                raise ValueError(
                    f"{name}=True is not supported: leave it out, or write a model_fn that does it."
                )
        given.pop("fix_global_step_increment_bug", None)
        engineer = given.pop("feature_engineering_fn", None)
        optimizers = [name for name in given if name.endswith("optimizer") and given[name] is None]
        renamed = {"weight_column_name": "weight_column", "label_keys": "label_vocabulary"}
        options = {renamed.get(k, k): v for k, v in given.items() if k not in optimizers}
        if (norm := options.pop("gradient_clip_norm", None)) is not None:
            options.update(_clipped(given, norm))
        options["config"] = options.get("config") or RunConfig()
        core = self._kind(**options, loss_reduction=_MEAN)
        super().__init__(core._model_fn, core.model_dir, core.config, None, engineer)

    def _named(self, x: np.ndarray) -> Any:
        return {"": x}

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Any = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The class, or the number, of each example; with `outputs` dictionaries of these predictions."""
        if outputs is not None:
            return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)
        return self._only(self._one_of, x, input_fn, batch_size, as_iterable)

    def _only(self, key: str, x: Any, input_fn: Any, batch_size: int | None, as_iterable: bool) -> Any:
        rows = super().predict(x, input_fn, batch_size, [key])

        def values() -> Iterator[Any]:
            for row in rows:
                yield row[key][0] if row[key].shape == (1,) else row[key]

        return values() if as_iterable else np.array(list(values()))


class _Classifier(_Canned):
    _one_of = "class_ids"

    def predict_classes(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """The number of each example's class."""
        return self._only("class_ids", x, input_fn, batch_size, as_iterable)

    def predict_proba(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """The probability of each class."""
        return self._only("probabilities", x, input_fn, batch_size, as_iterable)


class _Regressor(_Canned):
    _one_of = "predictions"

    def predict_scores(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """The number of each example."""
        return self._only("predictions", x, input_fn, batch_size, as_iterable)


_UNSUPPORTED = "embedding_lr_multipliers=None, input_layer_min_slice_size=None"
_COMBINED = (
    "dnn_feature_columns=None, dnn_optimizer=None, dnn_hidden_units=None, dnn_activation_fn=relu, dnn_dropout=None, "
    "gradient_clip_norm=None, enable_centered_bias=False"
)


def _made_with(arguments: str) -> Any:
    return taking(signature_of(arguments, relu=find("nn.relu")))(_Canned._make)


class DNNClassifier(_Classifier):
    """`tf.estimator.DNNClassifier` with the arguments and methods of before; the loss is a mean."""

    _kind = canned.DNNClassifier
    __init__ = _made_with(
        "hidden_units, feature_columns, model_dir=None, n_classes=2, weight_column_name=None, optimizer=None, "
        "activation_fn=relu, dropout=None, gradient_clip_norm=None, enable_centered_bias=False, config=None, "
        f"feature_engineering_fn=None, {_UNSUPPORTED}, label_keys=None"
    )


class DNNRegressor(_Regressor):
    """`tf.estimator.DNNRegressor` with the arguments and methods of before; the loss is a mean."""

    _kind = canned.DNNRegressor
    __init__ = _made_with(
        "hidden_units, feature_columns, model_dir=None, weight_column_name=None, optimizer=None, activation_fn=relu, "
        "dropout=None, gradient_clip_norm=None, enable_centered_bias=False, config=None, "
        f"feature_engineering_fn=None, label_dimension=1, {_UNSUPPORTED}"
    )


class LinearClassifier(_Classifier):
    """`tf.estimator.LinearClassifier` with the arguments and methods of before; the loss is a mean."""

    _kind = canned.LinearClassifier
    __init__ = _made_with(
        "feature_columns, model_dir=None, n_classes=2, weight_column_name=None, optimizer=None, "
        "gradient_clip_norm=None, enable_centered_bias=False, _joint_weight=False, config=None, "
        "feature_engineering_fn=None, label_keys=None"
    )


class LinearRegressor(_Regressor):
    """`tf.estimator.LinearRegressor` with the arguments and methods of before; the loss is a mean."""

    _kind = canned.LinearRegressor
    __init__ = _made_with(
        "feature_columns, model_dir=None, weight_column_name=None, optimizer=None, gradient_clip_norm=None, "
        "enable_centered_bias=False, label_dimension=1, _joint_weights=False, config=None, feature_engineering_fn=None"
    )


class DNNLinearCombinedClassifier(_Classifier):
    """`tf.estimator.DNNLinearCombinedClassifier` with the arguments and methods of before; the loss is a mean."""

    _kind = canned.DNNLinearCombinedClassifier
    __init__ = _made_with(
        "model_dir=None, n_classes=2, weight_column_name=None, linear_feature_columns=None, linear_optimizer=None, "
        f"_joint_linear_weights=False, {_COMBINED}, config=None, feature_engineering_fn=None, {_UNSUPPORTED}, "
        "label_keys=None, fix_global_step_increment_bug=False"
    )


class DNNLinearCombinedRegressor(_Regressor):
    """`tf.estimator.DNNLinearCombinedRegressor` with the arguments and methods of before; the loss is a mean."""

    _kind = canned.DNNLinearCombinedRegressor
    __init__ = _made_with(
        "model_dir=None, weight_column_name=None, linear_feature_columns=None, linear_optimizer=None, "
        f"_joint_linear_weights=False, {_COMBINED}, label_dimension=1, config=None, feature_engineering_fn=None, "
        f"{_UNSUPPORTED}, fix_global_step_increment_bug=False"
    )
