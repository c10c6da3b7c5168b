"""`tf.contrib.learn.models`: a last layer with its loss, for model functions of before `tf.estimator`."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.losses.losses import mean_squared_error, softmax_cross_entropy
from tensorfleet.api.summary.summary import histogram
from tensorfleet.api.variables.initializers import RandomNormal
from tensorfleet.api.variables.scope import get_variable, variable_scope
from tensorfleet.ops.array.shape import squeeze
from tensorfleet.ops.nn.activations import xw_plus_b
from tensorfleet.ops.nn.losses import softmax


def logistic_regression(
    x: Any, y: Any, class_weight: Any = None, init_mean: float | None = None, init_stddev: float = 1.0
) -> tuple[Any, Any]:
    """Probabilities of the classes and the mean cross entropy with `y`, which has a column for each class.

    `class_weight` multiplies the classes' logits. The weights begin as random numbers around `init_mean`, or as
    `tf.get_variable` begins where it is None.
    """
    with variable_scope("logistic_regression"):
        weights, bias = _variables(x, y.get_shape()[-1], init_mean, init_stddev)
        histogram("logistic_regression.weights", weights)
        histogram("logistic_regression.bias", bias)
        logits = xw_plus_b(x, weights, bias)
        if class_weight is not None:
            logits = logits * class_weight
        return softmax(logits), softmax_cross_entropy(y, logits)


def logistic_regression_zero_init(x: Any, y: Any) -> tuple[Any, Any]:
    """`logistic_regression` whose weights begin as zeros."""
    return logistic_regression(x, y, init_mean=0.0, init_stddev=0.0)


def linear_regression(
    x: Any, y: Any, init_mean: float | None = None, init_stddev: float = 1.0
) -> tuple[Any, Any]:
    """Predictions and their mean squared error; weights as in `logistic_regression`."""
    with variable_scope("linear_regression"):
        one = y.get_shape().ndims == 1
        weights, bias = _variables(x, 1 if one else y.get_shape()[1], init_mean, init_stddev)
        histogram("linear_regression.weights", weights)
        histogram("linear_regression.bias", bias)
        predictions = xw_plus_b(x, weights, bias)
        if one:
            predictions = squeeze(predictions, axis=[1])
        return predictions, mean_squared_error(y, predictions)


def linear_regression_zero_init(x: Any, y: Any) -> tuple[Any, Any]:
    """`linear_regression` whose weights begin as zeros."""
    return linear_regression(x, y, init_mean=0.0, init_stddev=0.0)


def _variables(x: Any, outputs: Any, mean: float | None, stddev: float) -> tuple[Any, Any]:
    start = None if mean is None else RandomNormal(mean, stddev, dtype=x.dtype)
    weights = get_variable("weights", [x.get_shape()[1], outputs], dtype=x.dtype, initializer=start)
    return weights, get_variable("bias", [outputs], dtype=x.dtype, initializer=start)
