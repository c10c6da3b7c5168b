"""`tf.keras.estimator.model_to_estimator`: a compiled model as an Estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.train.scaffold import Scaffold
from tensorfleet.base import nest
from tensorfleet.base.naming import find
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, get_default_graph
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.optimizer_v2.optimizer_v2 import TFOptimizer
from tensorfleet_legacy.keras.saving.model_config import clone_model
from tensorfleet_legacy.keras.utils.generic_utils import CustomObjectScope


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: Any = None,
    custom_objects: dict[str, Any] | None = None,
    model_dir: Any = None,
    config: Any = None,
    checkpoint_format: str = "saver",
) -> Any:
    """An Estimator of a compiled model, or of one that was saved; it starts from the model's weights.

    Features are a tensor, or a dictionary by the names of the model's inputs; labels one by those of its outputs.
    """
    if (keras_model is None) == (keras_model_path is None):
        raise ValueError(
            "Please specity either a keras model or a path to a keras model: exactly one of the two."
        )
    if checkpoint_format not in ("saver", "checkpoint"):
        raise ValueError(f'checkpoint_format must be "saver" or "checkpoint", got {checkpoint_format!r}.')
    if keras_model is None:
        keras_model = find("keras.models.load_model")(keras_model_path, custom_objects)
    if keras_model._options is None:
        raise ValueError(
            "The given keras model has not been compiled yet. Please compile the model with `model.compile()` before "
            "calling `model_to_estimator()`."
        )
    if not keras_model.outputs:
        raise ValueError("The given keras model has no inputs yet: give its first layer an input_shape.")
    with keras_model._graph_of_model().as_default():
        weights = keras_model.get_weights()
        optimizer = _recipe(keras_model.optimizer)
    function = _model_fn(keras_model, weights, optimizer, custom_objects or {})
    return find("estimator.Estimator")(function, model_dir=model_dir, config=config)


def _recipe(optimizer: Any) -> Callable[[], Any]:
    """How to make the optimizer again, in another graph."""
    if isinstance(optimizer, TFOptimizer):
        return lambda: TFOptimizer(optimizer.optimizer)
    config = optimizer.get_config()
    return lambda: type(optimizer).from_config(config)


def _model_fn(original: Any, weights: list, optimizer: Callable, custom_objects: dict[str, Any]) -> Callable:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        """The model in the Estimator's graph."""
        training = mode == "train"
        state.set_learning_phase(int(training))
        with CustomObjectScope(custom_objects):
            model = clone_model(original, _ordered(features, original.input_names))
        predictions = dict(zip(model.output_names, model.outputs, strict=True))
        spec = find("estimator.EstimatorSpec")
        if mode == "infer":
            return spec(mode, predictions=predictions)
        targets = [
            _like(t, o) for t, o in zip(_ordered(labels, model.output_names), model.outputs, strict=True)
        ]
        options = {**original._options, "target_tensors": targets}
        model.compile(optimizer(), **options)
        result = model._made()
        metrics = dict(zip(result.names[1:], result.metrics_tensors, strict=True))
        if not training:
            for metric in result.metrics:
                for variable in metric.variables:
                    get_default_graph().add_to_collection(GraphKeys.LOCAL_VARIABLES, variable)
            return spec(
                mode,
                predictions=predictions,
                loss=result.total_loss,
                eval_metric_ops={
                    name: (metric.result(), value)
                    for metric, (name, value) in zip(result.metrics, metrics.items(), strict=True)
                },
            )
        step = find("train.get_or_create_global_step")()
        with control_dependencies([result.train_fetches[-1]]):  # a step whose input ended does not count
            counted = find("assign_add")(step, 1).op
        start = _starting(model, weights)
        return spec(
            mode,
            predictions=predictions,
            loss=result.total_loss,
            train_op=counted,
            scaffold=Scaffold(init_fn=lambda scaffold, session: start(session)),
        )

    return model_fn


def _starting(model: Any, weights: list) -> Callable[[Any], None]:
    """How the model gets its weights in a session; those of the first worker, where there are several."""
    workers = get_default_graph().__dict__.get("_of_workers")
    if workers is None or workers._num_workers == 1:

        def load(session: Any) -> None:
            for variable, value in zip(model.weights, weights, strict=True):
                variable.load(value, session)

        return load
    given = [find("placeholder")(v.dtype.base_dtype, v.shape) for v in model.weights]
    first = [workers._from_first(value, None)() for value in given]
    assigned = [_assigned(v, value) for v, value in zip(model.weights, first, strict=True)]
    return lambda session: session.run(assigned, dict(zip(given, weights, strict=True)))


def _assigned(variable: Any, value: Any) -> list:
    return [copy.assign(value, read_value=False) for copy in getattr(variable, "_copies", (variable,))]


def _ordered(given: Any, names: list[str]) -> list:
    """Tensors in the order of names."""
    if isinstance(given, dict):
        missing = [n for n in names if n not in given]
        if missing:
            raise KeyError(
                f"Difference(s) between model inputs and feature names: there is no {missing[0]!r} among {sorted(given)}."
            )
        return [given[n] for n in names]
    return nest.flatten(given)


def _like(target: Any, output: Any) -> Any:
    """True values in the type of an output; with its last axis, when that is one wide and missing."""
    target = find("cast")(target, output.dtype)
    rank = output.shape.ndims
    if target.shape.ndims is not None and rank is not None and target.shape.ndims == rank - 1:
        return find("expand_dims")(target, -1)
    return target
