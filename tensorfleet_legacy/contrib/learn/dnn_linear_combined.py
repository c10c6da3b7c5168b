"""Models of `tf.contrib.learn` that end with a head of one's choice, and `SVM` and `LogisticRegressor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorfleet.api.summary.summary import histogram, scalar
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet_legacy.contrib.learn.estimator import Estimator, _Canned
from tensorfleet_legacy.contrib.learn.head import BinaryLogisticHead, BinarySvmHead, RegressionHead
from tensorfleet_legacy.contrib.learn.head_functions import binary_svm_head
from tensorfleet_legacy.contrib.learn.metric_key import MetricKey
from tensorfleet_legacy.contrib.learn.model_fn import ModelFnOps, PredictionKey, ProblemType
from tensorfleet_legacy.contrib.learn.run_config import ModeKeys
from tensorfleet_legacy.estimator.canned import linear_sdca as sdca
from tensorfleet_legacy.estimator.canned.dnn import (
    DNN_RATE,
    LINEAR_BESIDE_DNN_RATE,
    LINEAR_RATE,
    optimizer_of,
)

_MIN_SLICE_BYTES = 64 << 20  # bytes from which a table is spread over parameter servers
_ACTIVATIONS = ("relu", "tanh", "sigmoid")

# -- networks ----------------------------------------------------------------------------------------


def _summarize(values: Any, name: str) -> None:
    scalar(f"{name}_fraction_of_zero_values", find("nn.zero_fraction")(values))
    histogram(f"{name}_activation", values)


def _pieces(config: Any, smallest: int | None = None) -> Any:
    options = {} if smallest is None else {"min_slice_size": smallest}
    count = config.num_ps_replicas if config else 0
    return find("min_max_variable_partitioner")(max_partitions=max(count, 1), **options)


def _activation(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    if given not in _ACTIVATIONS:
        raise ValueError(
            f"Activation name should be one of [{', '.join(_ACTIVATIONS)}], you provided {given}."
        )
    return find(f"nn.{given}")


def _deep(features: dict, mode: str, outputs: int, config: Any, p: dict, inputs: Any) -> Any:
    """Layers over the dense columns; their variables are in the collection "dnn"."""
    dense = find("contrib.layers.fully_connected")
    with variable_scope("dnn", partitioner=_pieces(config)):
        with variable_scope("input_from_feature_columns", partitioner=inputs) as scope:
            net = find("contrib.layers.input_from_feature_columns")(
                features, p["feature_columns"], weight_collections=["dnn"], scope=scope
            )
        sizes = [
            (f"hiddenlayer_{i}", n, _activation(p["activation_fn"])) for i, n in enumerate(p["hidden_units"])
        ]
        for name, size, activation in [*sizes, ("logits", outputs, None)]:
            with variable_scope(name) as scope:
                net = dense(net, size, activation, variables_collections=["dnn"], scope=scope)
                if p["dropout"] is not None and mode == ModeKeys.TRAIN and name != "logits":
                    net = find("contrib.layers.dropout")(net, keep_prob=1.0 - p["dropout"])
            _summarize(net, scope.name)
        return net


def _linear(features: dict, outputs: int, columns: Any, joint: bool, inputs: Any) -> Any:
    """A weighted sum of the columns; its variables are in the collection "linear"."""
    kind = "joint_weighted_sum_from_feature_columns" if joint else "weighted_sum_from_feature_columns"
    with variable_scope("linear", partitioner=inputs) as scope:
        return find(f"contrib.layers.{kind}")(
            features, columns, outputs, weight_collections=["linear"], scope=scope
        )[0]


def _steps(given: list[tuple], clip: float | None, together: bool) -> Callable:
    """The training operation: each (collection, optimizer) with the same loss. `together` counts that as one step."""

    def train(loss: Any) -> Any:
        step = find("train.get_global_step")()
        results = []
        for name, optimizer in given:
            results.append(
                find("contrib.layers.optimize_loss")(
                    loss,
                    step,
                    None,
                    optimizer,
                    clip_gradients=clip,
                    variables=find("get_collection")(name),
                    name=name,
                    summaries=[],
                    increment_global_step=not together,
                )
            )
        if not together:
            return find("group")(*results)
        with control_dependencies(results):
            return find("assign_add")(step, 1).op

    return train


def _named(features: Any) -> dict:
    return features if isinstance(features, dict) else {"": features}


def _headed_model(features: Any, labels: Any, mode: str, params: dict, config: Any = None) -> ModelFnOps:
    """A deep network, a linear one, or the sum of both, under a head."""
    head, features = params["head"], _named(features)
    deep, linear = params.get("deep"), params.get("linear")
    logits, training = [], []
    inputs = params.get("input_layer_partitioner") or _pieces(config, _MIN_SLICE_BYTES)
    if deep:
        logits.append(_deep(features, mode, head.logits_dimension, config, deep, inputs))
        training.append(("dnn", lambda: optimizer_of(deep["optimizer"] or "Adagrad", DNN_RATE)))
    if linear:
        columns = list(linear["feature_columns"])
        rate = min(LINEAR_BESIDE_DNN_RATE if deep else LINEAR_RATE, 1.0 / len(columns) ** 0.5)
        logits.append(_linear(features, head.logits_dimension, columns, linear["joint"], inputs))
        training.append(("linear", lambda: optimizer_of(linear["optimizer"] or "Ftrl", rate)))
    return head.create_model_fn_ops(
        features=features,
        mode=mode,
        labels=labels,
        train_op_fn=lambda loss: _steps(
            [(name, make()) for name, make in training], params["clip"], params["together"]
        )(loss),
        logits=sum(logits[1:], logits[0]),
    )


# -- estimators --------------------------------------------------------------------------------------


class _Headed(Estimator):
    """An estimator of `_headed_model`."""

    def _named(self, x: Any) -> Any:
        return {"": x}

    def _refuse(self, given: dict[str, Any]) -> None:
        for name in _Canned._unsupported:
            if given.get(name) is not None:
                raise ValueError(f"{name} is not supported: leave it out, or write a model_fn that does it.")


class LinearEstimator(_Headed):
    """A linear model with a head."""

    def __init__(
        self,
        feature_columns: Any,
        head: Any,
        model_dir: Any = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable | None = None,
    ) -> None:
        if sdca.is_sdca(optimizer):
            raise ValueError("LinearEstimator does not support SDCA optimizer.")
        if not feature_columns:
            raise ValueError("feature_columns can't be empty.")
        linear = {"feature_columns": feature_columns, "optimizer": optimizer, "joint": _joint_weights}
        params = {"head": head, "linear": linear, "clip": gradient_clip_norm, "together": True}
        super().__init__(_headed_model, model_dir, config, params, feature_engineering_fn)


class DNNEstimator(_Headed):
    """A deep network with a head."""

    def __init__(
        self,
        head: Any,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Any = None,
        optimizer: Any = None,
        activation_fn: Any = find("nn.relu"),  # noqa: B008
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Callable | None = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
    ) -> None:
        self._refuse(
            {
                "embedding_lr_multipliers": embedding_lr_multipliers,
                "input_layer_min_slice_size": input_layer_min_slice_size,
            }
        )
        deep = {
            "feature_columns": feature_columns,
            "hidden_units": hidden_units,
            "optimizer": optimizer,
            "activation_fn": activation_fn,
            "dropout": dropout,
        }
        params = {"head": head, "deep": deep, "clip": gradient_clip_norm, "together": True}
        super().__init__(_headed_model, model_dir, config, params, feature_engineering_fn)


class DNNLinearCombinedEstimator(_Headed):
    """A deep and a linear network with a head.

    Without `fix_global_step_increment_bug` each of both counts a step.
    """

    def __init__(
        self,
        head: Any,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = None,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Callable | None = None,
        embedding_lr_multipliers: Any = None,
        fix_global_step_increment_bug: bool = False,
        input_layer_partitioner: Any = None,
    ) -> None:
        self._refuse({"embedding_lr_multipliers": embedding_lr_multipliers})
        if not linear_feature_columns and not dnn_feature_columns:
            raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
        if dnn_feature_columns and not dnn_hidden_units:
            raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
        params: dict[str, Any] = {"head": head, "clip": gradient_clip_norm}
        params["together"] = fix_global_step_increment_bug
        params["input_layer_partitioner"] = input_layer_partitioner
        if linear_feature_columns:
            params["linear"] = {
                "feature_columns": linear_feature_columns,
                "optimizer": linear_optimizer,
                "joint": _joint_linear_weights,
            }
        if dnn_feature_columns:
            params["deep"] = {
                "feature_columns": dnn_feature_columns,
                "hidden_units": dnn_hidden_units,
                "optimizer": dnn_optimizer,
                "activation_fn": dnn_activation_fn or find("nn.relu"),
                "dropout": dnn_dropout,
            }
        super().__init__(_headed_model, model_dir, config, params, feature_engineering_fn)


def sdca_model_fn(features: dict, labels: Any, mode: str, params: dict) -> ModelFnOps:
    """A linear model that dual coordinate ascent trains, under a head of two classes or of one number."""
    head, optimizer, columns = params["head"], params["optimizer"], params["feature_columns"]
    if not sdca.is_sdca(optimizer):
        raise ValueError("Optimizer must be of type SDCAOptimizer")
    kinds: dict[Any, str] = {
        BinarySvmHead: "hinge_loss",
        BinaryLogisticHead: "logistic_loss",
        RegressionHead: "squared_loss",
    }
    if type(head) not in kinds or head.logits_dimension != 1:
        raise ValueError(f"Unsupported head type: {head}")
    with variable_scope("linear", partitioner=optimizer.partitioner) as scope:
        logits, variables, bias = find("contrib.layers.weighted_sum_from_feature_columns")(
            features, columns, 1, scope=scope
        )
    hooks = []

    def train(_: Any) -> Any:
        asked = params["weight_column_name"], kinds[type(head)], features, labels
        step = find("train.get_global_step")()
        model, op = optimizer.get_train_step({**variables, "bias": [bias]}, *asked, step)
        hooks.append(sdca.hook_of(model, op))
        return op

    result = head.create_model_fn_ops(
        features=features, labels=labels, mode=mode, train_op_fn=train, logits=logits
    )
    return result._replace(training_chief_hooks=hooks)


class SVM(Estimator):
    """A linear support vector machine of two classes. `example_id_column` is a feature of texts that tell examples apart."""

    def __init__(
        self,
        example_id_column: str,
        feature_columns: Any,
        weight_column_name: str | None = None,
        model_dir: Any = None,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        num_loss_partitions: int = 1,
        kernels: Any = None,
        config: Any = None,
        feature_engineering_fn: Callable | None = None,
    ) -> None:
        if kernels is not None:
            raise ValueError("Kernel SVMs are not currently supported.")
        optimizer = sdca.SDCAOptimizer(
            example_id_column,
            num_loss_partitions,
            symmetric_l1_regularization=l1_regularization,
            symmetric_l2_regularization=l2_regularization,
        )
        params = {
            "head": binary_svm_head(weight_column_name=weight_column_name),
            "feature_columns": feature_columns,
            "optimizer": optimizer,
            "weight_column_name": weight_column_name,
        }
        super().__init__(sdca_model_fn, model_dir, config, params, feature_engineering_fn)

    def predict_classes(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """The class of each example."""
        return self._only(PredictionKey.CLASSES, x, input_fn, batch_size, as_iterable)

    def predict_proba(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Any = None,
        as_iterable: bool = True,
    ) -> Any:
        """The probabilities of the classes: a ValueError, as the loss of this model gives none."""
        return self._only(PredictionKey.PROBABILITIES, x, input_fn, batch_size, as_iterable)

    def _only(self, key: str, x: Any, input_fn: Any, batch_size: int | None, as_iterable: bool) -> Any:
        predictions = self.predict(x, input_fn, batch_size, [key], as_iterable)

        def each() -> Iterator[Any]:
            for row in predictions:
                yield row[key]

        return each() if as_iterable else predictions[key]


def LogisticRegressor(
    model_fn: Callable,
    thresholds: Any = None,
    model_dir: Any = None,
    config: Any = None,
    feature_engineering_fn: Callable | None = None,
) -> Estimator:
    """An estimator of a model function whose predictions are probabilities, with the metrics of two classes.

    `model_fn(features, labels, mode)` gives (predictions, loss, train_op).
    """

    def model(features: Any, labels: Any, mode: str, params: dict) -> ModelFnOps:
        predictions, loss, train_op = model_fn(features, labels, mode)
        metrics = None
        if mode == ModeKeys.EVAL:
            metrics = _logistic_metrics(labels, predictions, params.get("thresholds") or [0.5])
        outputs = {"head": (ProblemType.LOGISTIC_REGRESSION, {"predictions": predictions})}
        return ModelFnOps(mode, predictions, loss, train_op, metrics, outputs)

    return Estimator(model, model_dir, config, {"thresholds": thresholds}, feature_engineering_fn)


def _logistic_metrics(labels: Any, predictions: Any, thresholds: Any) -> dict[str, tuple]:
    if isinstance(labels, dict) and len(labels) == 1:
        (labels,) = labels.values()
    metric = lambda name, *given: find(f"metrics.{name}")(*given)  # noqa: E731
    result = {
        MetricKey.PREDICTION_MEAN: metric("mean", predictions),
        MetricKey.LABEL_MEAN: metric("mean", labels),
        MetricKey.ACCURACY_BASELINE: metric("mean", labels),
        MetricKey.AUC: metric("auc", labels, predictions),
    }
    for threshold in thresholds:
        positive = find("cast")(find("greater_equal")(predictions, threshold), dtypes.float32)
        result[MetricKey.ACCURACY_MEAN % threshold] = metric("accuracy", labels, positive)
        result[MetricKey.PRECISION_MEAN % threshold] = metric("precision", labels, positive)
        result[MetricKey.RECALL_MEAN % threshold] = metric("recall", labels, positive)
    return result
