"""The networks of ready-made models: deep, linear, both, or nothing but the labels' frequency."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorfleet.api.summary.summary import histogram, scalar
from tensorfleet.api.train.global_step import get_global_step
from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, get_collection
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.estimator.canned import linear_sdca as sdca
from tensorfleet_legacy.estimator.canned.head import Head
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec, ModeKeys
from tensorfleet_legacy.feature_column.feature_column_inputs import input_layer, linear_model
from tensorfleet_legacy.internals.util.tf_decorator import fn_args

_OPTIMIZERS = {
    "Adagrad": "AdagradOptimizer",
    "Adam": "AdamOptimizer",
    "Ftrl": "FtrlOptimizer",
    "RMSProp": "RMSPropOptimizer",
    "SGD": "GradientDescentOptimizer",
}
DNN_RATE, LINEAR_RATE, BASELINE_RATE, LINEAR_BESIDE_DNN_RATE = 0.05, 0.2, 0.3, 0.005
_MIN_SLICE_BYTES = 64 << 20  # bytes from which an embedding is spread over parameter servers


def optimizer_of(given: Any, rate: float) -> Any:
    """An optimizer by its name, made by a function, or as it is."""
    if isinstance(given, str):
        if given not in _OPTIMIZERS:
            raise ValueError(
                f"Unsupported optimizer name: {given}. Supported names are: {tuple(sorted(_OPTIMIZERS))}"
            )
        return find(f"train.{_OPTIMIZERS[given]}")(learning_rate=rate)
    result = given() if callable(given) else given
    if not isinstance(result, Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {result}")
    return result


def _partitioner(config: Any, smallest: int | None = None) -> Any:
    """Variables are spread over the parameter servers when they are large."""
    options = {} if smallest is None else {"min_slice_size": smallest}
    return find("min_max_variable_partitioner")(max_partitions=max(config.num_ps_replicas, 1), **options)


def _need_dictionary(features: Any) -> None:
    if not isinstance(features, dict):
        raise ValueError(f"features should be a dictionary of `Tensor`s. Given type: {type(features)}")


def _ended(
    head: Any, features: dict, mode: str, scores: Tensor, labels: Any, **training: Any
) -> EstimatorSpec:
    """A network with its head, which may be a program's own."""
    return head.create_estimator_spec(features=features, mode=mode, logits=scores, labels=labels, **training)


def _deep(
    features: dict,
    mode: str,
    units: int,
    columns: Any,
    hidden_units: Any,
    activation_fn: Callable,
    dropout: float | None,
    batch_norm: bool,
    partitioner: Any,
) -> Tensor:
    """The scores of a network of dense layers, in the variable scope that is open."""
    layers, scope_of = find, find("variable_scope")
    with scope_of("input_from_feature_columns", values=tuple(features.values()), partitioner=partitioner):
        net = input_layer(features, columns)
    training = mode == ModeKeys.TRAIN
    for i, size in enumerate(hidden_units):
        with scope_of(f"hiddenlayer_{i}", values=(net,)) as scope:
            net = layers("layers.dense")(
                net,
                size,
                activation=activation_fn,
                kernel_initializer=find("glorot_uniform_initializer")(),
                name=scope,
            )
            if dropout is not None and training:
                net = layers("layers.dropout")(net, rate=dropout, training=True)
            if batch_norm:
                net = layers("layers.batch_normalization")(
                    net, momentum=0.999, training=training, name=f"batchnorm_{i}"
                )
        _summarize(net, scope.name)
    with scope_of("logits", values=(net,)) as scope:
        scores = layers("layers.dense")(
            net, units, kernel_initializer=find("glorot_uniform_initializer")(), name=scope
        )
    _summarize(scores, scope.name)
    return scores


def dnn_logit_fn_builder(
    units: int,
    hidden_units: Any,
    feature_columns: Any,
    activation_fn: Callable,
    dropout: float | None,
    input_layer_partitioner: Any,
    batch_norm: bool,
) -> Callable[..., Tensor]:
    """A function of features and mode that gives the scores of a deep network, in the variable scope that is open."""
    _check_units(units)
    sizes = list(hidden_units)

    def dnn_logit_fn(features: dict, mode: str) -> Tensor:
        columns, partitioner = feature_columns, input_layer_partitioner
        return _deep(features, mode, units, columns, sizes, activation_fn, dropout, batch_norm, partitioner)

    return dnn_logit_fn


def linear_logit_fn_builder(
    units: int, feature_columns: Any, sparse_combiner: str = "sum"
) -> Callable[..., Tensor]:
    """A function of features that gives the scores of a linear model, in the variable scope that is open."""
    _check_units(units)

    def linear_logit_fn(features: dict) -> Tensor:
        return _linear(features, units, feature_columns, sparse_combiner)

    return linear_logit_fn


def _check_units(units: Any) -> None:
    if not isinstance(units, int):
        raise ValueError(f"units must be an int. Given type: {type(units)}")


def call_logit_fn(logit_fn: Callable, features: Any, mode: str, params: Any, config: Any) -> Any:
    """Calls a function of features with those of `mode`, `params` and `config` that it names; it gives a tensor, or several
    by name."""
    given = {"mode": mode, "params": params, "config": config}
    asked = fn_args(logit_fn)
    result = logit_fn(features=features, **{name: value for name, value in given.items() if name in asked})
    if not isinstance(result, Tensor) and not isinstance(result, dict):
        raise ValueError("model_fn should return a Tensor or a dictionary of Tensors.")
    return result


def _summarize(values: Tensor, name: str) -> None:
    scalar(f"{name}/fraction_of_zero_values", find("nn.zero_fraction")(values))
    histogram(f"{name}/activation", values)


def _linear(
    features: dict, units: int, columns: Any, sparse_combiner: str, weights_of: dict | None = None
) -> Tensor:
    """The scores of a linear model, in the variable scope that is open; `weights_of` gets its variables."""
    variables: dict = {}
    scores = linear_model(
        features, columns, units=units, sparse_combiner=sparse_combiner, cols_to_vars=variables
    )
    if weights_of is not None:
        weights_of.update(variables)
    bias = variables.pop("bias")[0]
    if units > 1:
        histogram("bias", bias)
    else:
        scalar("bias", bias[0])
    weights = [find("reshape")(w, [-1]) for parts in variables.values() for w in parts]
    scalar("fraction_of_zero_weights", find("nn.zero_fraction")(find("concat")(weights, 0)))
    return scores


def dnn_model_fn(
    head: Head,
    feature_columns: Any,
    hidden_units: Any,
    optimizer: Any,
    activation_fn: Callable,
    dropout: float | None,
    batch_norm: bool,
    input_layer_partitioner: Any,
) -> Callable[..., EstimatorSpec]:
    """A model function for a deep network."""
    sizes = list(
        hidden_units
    )  # `map(int, ...)` could be gone through once, and there is a graph for each mode

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        _need_dictionary(features)
        chosen = optimizer_of(optimizer, DNN_RATE)
        with find("variable_scope")("dnn", values=tuple(features.values()), partitioner=_partitioner(config)):
            spread = input_layer_partitioner or _partitioner(config, _MIN_SLICE_BYTES)
            network = (feature_columns, sizes, activation_fn, dropout, batch_norm, spread)
            scores = _deep(features, mode, head.logits_dimension, *network)
            return _ended(head, features, mode, scores, labels, optimizer=chosen)

    return model_fn


def linear_model_fn(
    head: Head, feature_columns: Any, optimizer: Any, partitioner: Any, sparse_combiner: str
) -> Callable[..., EstimatorSpec]:
    """A model function for a linear model."""
    loss_type = sdca.check_labels(head, sparse_combiner) if sdca.is_sdca(optimizer) else ""

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        _need_dictionary(features)
        spread = partitioner or _partitioner(config, _MIN_SLICE_BYTES)
        with find("variable_scope")("linear", values=tuple(features.values()), partitioner=spread):
            if loss_type:
                return _ascending(head, features, labels, mode, feature_columns, optimizer, loss_type)
            chosen = optimizer_of(optimizer, LINEAR_RATE)
            scores = _linear(features, head.logits_dimension, feature_columns, sparse_combiner)
            return _ended(head, features, mode, scores, labels, optimizer=chosen)

    return model_fn


def _ascending(
    head: Any, features: dict, labels: Any, mode: str, columns: Any, optimizer: Any, loss_type: str
) -> EstimatorSpec:
    """A linear model that is trained by dual coordinate ascent."""
    weights: dict = {}
    scores = _linear(features, 1, columns, "sum", weights)
    if mode != ModeKeys.TRAIN:
        return _ended(head, features, mode, scores, labels)
    asked = head._weight_column, loss_type, features, labels, get_global_step()
    model, train_op = optimizer.train_step(weights, *asked)
    spec = _ended(head, features, mode, scores, labels, train_op_fn=lambda loss: train_op)
    hook = sdca.hook_of(model, train_op)
    return spec._replace(training_chief_hooks=(*spec.training_chief_hooks, hook))


def combined_model_fn(
    head: Head,
    linear_feature_columns: Any,
    linear_optimizer: Any,
    dnn_feature_columns: Any,
    dnn_optimizer: Any,
    dnn_hidden_units: Any,
    dnn_activation_fn: Callable,
    dnn_dropout: float | None,
    input_layer_partitioner: Any,
    linear_sparse_combiner: str,
    batch_norm: bool = False,
) -> Callable[..., EstimatorSpec]:
    """A model function for a linear model and a deep network whose scores are added; each has an optimizer of its own."""
    linear_columns, dnn_columns = list(linear_feature_columns or ()), list(dnn_feature_columns or ())
    if not linear_columns and not dnn_columns:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    sizes = list(dnn_hidden_units or ())
    if dnn_columns and not sizes:
        raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        _need_dictionary(features)
        scope_of = find("variable_scope")
        values = tuple(features.values())
        spread = input_layer_partitioner or _partitioner(config, _MIN_SLICE_BYTES)
        optimizers: dict[str, Any] = {}
        parts = []
        if dnn_columns:
            optimizers["dnn"] = optimizer_of(dnn_optimizer, DNN_RATE)
            with scope_of("dnn", values=values, partitioner=_partitioner(config)):
                network = (dnn_columns, sizes, dnn_activation_fn, dnn_dropout, batch_norm, spread)
                parts.append(_deep(features, mode, head.logits_dimension, *network))
        if linear_columns:
            rate = min(LINEAR_BESIDE_DNN_RATE, 1 / math.sqrt(len(linear_columns)))
            optimizers["linear"] = optimizer_of(linear_optimizer, rate)
            with scope_of("linear", values=values, partitioner=spread):
                parts.append(_linear(features, head.logits_dimension, linear_columns, linear_sparse_combiner))
        scores = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return _ended(head, features, mode, scores, labels, train_op_fn=_minimizes_each(optimizers))

    return model_fn


def _minimizes_each(optimizers: dict[str, Any]) -> Callable[[Tensor], Any]:
    """An operation that trains each scope's variables with its own optimizer, and then counts the step."""

    def train_op_fn(loss: Tensor) -> Any:
        trains = [
            optimizer.minimize(loss, var_list=get_collection(GraphKeys.TRAINABLE_VARIABLES, f"{scope}/"))
            for scope, optimizer in optimizers.items()
        ]
        with control_dependencies([group(*trains)]):
            return find("assign_add")(get_global_step(), 1).op

    return train_op_fn


def baseline_model_fn(head: Head, optimizer: Any) -> Callable[..., EstimatorSpec]:
    """A model function for a model that looks at no feature: it learns the labels' mean."""

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        _need_dictionary(features)
        chosen = optimizer_of(optimizer, BASELINE_RATE)
        with find("variable_scope")("baseline", values=tuple(features.values())):
            bias = find("get_variable")(
                "bias", [head.logits_dimension], initializer=find("zeros_initializer")()
            )
            size = _batch_size(features)
            scores = find("tile")(find("expand_dims")(bias, 0), find("stack")([size, 1]))
            return _ended(head, features, mode, scores, labels, optimizer=chosen)

    return model_fn


def _batch_size(features: dict) -> Tensor:
    if not features:
        raise ValueError("features cannot be empty: the number of examples is that of their rows.")
    first = next(iter(features.values()))
    shape = getattr(first, "dense_shape", None)
    if shape is not None:
        return find("cast")(shape[0], find("int32"))
    return find("shape")(first)[0]
