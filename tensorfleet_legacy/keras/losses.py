"""`tf.keras.losses` and the functions of `tf.keras.metrics`: one number for each example, true values first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.arguments import signature_of, taking
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras import backend_arithmetic as arithmetic
from tensorfleet_legacy.keras.utils.generic_utils import deserialize_keras_object, serialize_keras_object


def _pair(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    predicted = to_tensor(y_pred)
    return find("cast")(y_true, predicted.dtype.base_dtype), predicted


def _mean(value: Any) -> Tensor:
    return find("reduce_mean")(value, -1)


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of squared differences."""
    true, predicted = _pair(y_true, y_pred)
    return _mean(find("squared_difference")(predicted, true))


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of absolute differences."""
    true, predicted = _pair(y_true, y_pred)
    return _mean(find("abs")(predicted - true))


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of absolute differences, in percent of the true values."""
    true, predicted = _pair(y_true, y_pred)
    size = find("maximum")(find("abs")(true), state.epsilon())
    return 100.0 * _mean(find("abs")((true - predicted) / size))


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of squared differences of logarithms."""
    true, predicted = (find("log")(find("maximum")(v, state.epsilon()) + 1.0) for v in _pair(y_true, y_pred))
    return _mean(find("squared_difference")(predicted, true))


def _smooth(true: Tensor, smoothing: Any, classes: Any) -> Tensor:
    return true if not smoothing else true * (1.0 - smoothing) + smoothing / classes


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0
) -> Tensor:
    """The mean cross entropy of yes-or-no answers."""
    true, predicted = _pair(y_true, y_pred)
    true = _smooth(true, label_smoothing, 2)
    return _mean(arithmetic.binary_crossentropy(true, predicted, from_logits))


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0
) -> Tensor:
    """The cross entropy of classes, given as rows of probabilities."""
    true, predicted = _pair(y_true, y_pred)
    true = _smooth(true, label_smoothing, find("cast")(find("shape")(true)[-1], predicted.dtype))
    return arithmetic.categorical_crossentropy(true, predicted, from_logits)


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """The cross entropy of classes, given as numbers."""
    return arithmetic.sparse_categorical_crossentropy(y_true, y_pred, from_logits, axis)


def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of `max(1 - true * predicted, 0)`, with labels 0 read as -1."""
    true, predicted = _signs(y_true, y_pred)
    return _mean(find("maximum")(1.0 - true * predicted, 0.0))


def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of squares of the hinge loss."""
    true, predicted = _signs(y_true, y_pred)
    return _mean(find("square")(find("maximum")(1.0 - true * predicted, 0.0)))


def _signs(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    true, predicted = _pair(y_true, y_pred)
    binary = find("reduce_all")(find("logical_or")(find("equal")(true, 0), find("equal")(true, 1)))
    return find("cond")(binary, lambda: 2.0 * true - 1.0, lambda: find("identity")(true)), predicted


def kullback_leibler_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """The divergence of the predicted distribution from the true one."""
    true, predicted = (find("clip_by_value")(v, state.epsilon(), 1.0) for v in _pair(y_true, y_pred))
    return find("reduce_sum")(true * find("log")(true / predicted), -1)


def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of `predicted - true * log(predicted)`."""
    true, predicted = _pair(y_true, y_pred)
    return _mean(predicted - true * find("log")(predicted + state.epsilon()))


def categorical_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """`max(1 + largest wrong - right, 0)`, of classes given as rows."""
    true, predicted = _pair(y_true, y_pred)
    right = find("reduce_sum")(true * predicted, -1)
    wrong = find("reduce_max")((1.0 - true) * predicted, -1)
    return find("maximum")(wrong - right + 1.0, 0.0)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Less the cosine of the angle between vectors."""
    true, predicted = (find("nn.l2_normalize")(v, axis) for v in _pair(y_true, y_pred))
    return -find("reduce_sum")(true * predicted, axis)


def huber_loss(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """Half the square of small differences, and a line for those beyond `delta`."""
    true, predicted = _pair(y_true, y_pred)
    size = find("abs")(predicted - true)
    small = find("minimum")(size, delta)
    return 0.5 * small * small + delta * (size - small)


def logcosh(y_true: Any, y_pred: Any) -> Tensor:
    """The mean logarithm of the hyperbolic cosine of differences."""
    true, predicted = _pair(y_true, y_pred)
    x = predicted - true
    return _mean(x + find("nn.softplus")(-2.0 * x) - find("log")(find("cast")(2.0, x.dtype)))


# -- the share of right answers -------------------------------------------------------------------------


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """The share of answers on the right side of the threshold."""
    true, predicted = _pair(y_true, y_pred)
    sides = find("cast")(find("greater")(predicted, threshold), predicted.dtype)
    return _mean(find("cast")(find("equal")(true, sides), dtypes.float32))


def categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether the largest probability is that of the right class, given as a row."""
    same = find("equal")(find("argmax")(y_true, -1), find("argmax")(y_pred, -1))
    return find("cast")(same, state.floatx())


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether the largest probability is that of the right class, given as a number."""
    labels, predicted = to_tensor(y_true), to_tensor(y_pred)
    if labels.shape.ndims == predicted.shape.ndims:
        labels = find("squeeze")(labels, [-1])
    return find("cast")(
        find("equal")(find("cast")(labels, dtypes.int64), find("argmax")(predicted, -1)), state.floatx()
    )


# -- classes ------------------------------------------------------------------------------------------


class Loss:
    """Base of losses: `call` gives one number for each example, which `reduction` makes one of."""

    def __init__(self, reduction: str = "auto", name: str | None = None) -> None:
        if reduction not in ("auto", "none", "sum", "sum_over_batch_size"):
            raise ValueError(f"Invalid Reduction Key {reduction}.")
        self.reduction, self.name = reduction, name

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """The loss of each example."""
        raise AssertionError("A loss of one's own defines `call`.")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """The loss: the mean over all examples unless `reduction` says otherwise."""
        with find("name_scope")(self.name, type(self).__name__):
            losses = self.call(y_true, y_pred)
            if sample_weight is not None:
                losses = losses * _aligned(find("cast")(sample_weight, losses.dtype), losses)
            if self.reduction == "none":
                return losses
            total = find("reduce_sum")(losses)
            if self.reduction == "sum":
                return total
            return find("div_no_nan")(total, find("cast")(find("size")(losses), losses.dtype))

    def get_config(self) -> dict[str, Any]:
        """The arguments to make the same loss again."""
        return {"reduction": self.reduction, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Loss:
        """A loss from what `get_config` gave."""
        return cls(**config)


def _aligned(weights: Tensor, losses: Tensor) -> Tensor:
    """Weights with as many axes as the losses."""
    rank, given = losses.shape.ndims, weights.shape.ndims
    if rank is None or given is None:
        return weights
    if given == rank + 1 and rank > 0:
        return find("squeeze")(weights, [-1])
    for _ in range(rank - given if given else 0):
        weights = find("expand_dims")(weights, -1)
    return weights


def _class(name: str, function: Callable, **defaults: Any) -> type:
    """The class of a loss, whose options come before `reduction` as in Keras."""

    taken = [f"{key}={value!r}" for key, value in defaults.items()]

    @taking(signature_of(", ".join([*taken, f"reduction='auto', name={function.__name__!r}"])))
    def init(self: Any, given: dict[str, Any]) -> None:
        Loss.__init__(self, given.pop("reduction"), given.pop("name"))
        self._options = given

    def call(self: Any, y_true: Any, y_pred: Any) -> Tensor:
        return function(y_true, y_pred, **self._options)

    def get_config(self: Any) -> dict[str, Any]:
        return {**Loss.get_config(self), **self._options}

    body = {"__init__": init, "call": call, "get_config": get_config, "function": staticmethod(function)}
    body |= {"__doc__": function.__doc__, "__module__": __name__}
    return type(name, (Loss,), body)


MeanSquaredError = _class("MeanSquaredError", mean_squared_error)
MeanAbsoluteError = _class("MeanAbsoluteError", mean_absolute_error)
MeanAbsolutePercentageError = _class("MeanAbsolutePercentageError", mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _class("MeanSquaredLogarithmicError", mean_squared_logarithmic_error)
BinaryCrossentropy = _class("BinaryCrossentropy", binary_crossentropy, from_logits=False, label_smoothing=0)
CategoricalCrossentropy = _class(
    "CategoricalCrossentropy", categorical_crossentropy, from_logits=False, label_smoothing=0
)
SparseCategoricalCrossentropy = _class(
    "SparseCategoricalCrossentropy", sparse_categorical_crossentropy, from_logits=False
)
Hinge = _class("Hinge", hinge)
SquaredHinge = _class("SquaredHinge", squared_hinge)
KLDivergence = _class("KLDivergence", kullback_leibler_divergence)
Poisson = _class("Poisson", poisson)
LogCosh = _class("LogCosh", logcosh)
CategoricalHinge = _class("CategoricalHinge", categorical_hinge)
CosineSimilarity = _class("CosineSimilarity", cosine_similarity, axis=-1)
Huber = _class("Huber", huber_loss, delta=1.0)

_SHORT = {
    "mse": mean_squared_error,
    "mae": mean_absolute_error,
    "mape": mean_absolute_percentage_error,
    "msle": mean_squared_logarithmic_error,
    "kld": kullback_leibler_divergence,
    "cosine_proximity": cosine_similarity,
    "cosine": cosine_similarity,
}


def serialize(loss: Any) -> Any:
    """A loss as a dictionary, a function as its name."""
    return serialize_keras_object(loss)


def deserialize(name: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """A loss from what `serialize` gave."""
    known = {**globals(), **_SHORT, **{k.upper(): v for k, v in _SHORT.items()}}
    return deserialize_keras_object(name, known, custom_objects, "loss function")


def get(identifier: Any) -> Any:
    """The loss of a name, or from a dictionary; a function or an object as it is."""
    if identifier is None or callable(identifier):
        return identifier
    if isinstance(identifier, (dict, str)):
        return deserialize(identifier)
    raise ValueError(f"Could not interpret loss function identifier: {identifier}")
