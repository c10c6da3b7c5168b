"""`tf.estimator.add_metrics`: an estimator with further metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet_legacy.estimator.estimator import Estimator
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec, ModeKeys
from tensorfleet_legacy.internals.util.tf_decorator import fn_args

_ARGUMENTS = {"features", "labels", "predictions", "config"}


def add_metrics(estimator: Estimator, metric_fn: Callable[..., dict]) -> Estimator:
    """An estimator that evaluates `metric_fn(features, labels, predictions, config)` as well.

    The function takes those arguments that it names and gives a dictionary of metrics.
    """
    unknown = set(fn_args(metric_fn)) - _ARGUMENTS
    if unknown:
        raise ValueError(f"metric_fn ({metric_fn}) has following not expected args: {sorted(unknown)}")

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        given = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        asked = fn_args(metric_fn)
        more = metric_fn(**{name: value for name, value in given.items() if name in asked})
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **more})

    return Estimator(
        model_fn, estimator.model_dir, estimator.config, warm_start_from=estimator._warm_start_settings
    )
