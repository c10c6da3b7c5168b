"""`tf.keras.metrics`: the metrics themselves, and metrics by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.arguments import signature_of, taking, with_defaults
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras import losses as penalties
from tensorfleet_legacy.keras import metrics_confusion as counting
from tensorfleet_legacy.keras.metrics_base import Mean, MeanMetricWrapper, Metric, Sum, weighted
from tensorfleet_legacy.keras.utils.generic_utils import deserialize_keras_object, serialize_keras_object

__all__ = ["Mean", "MeanMetricWrapper", "Metric", "Sum"]

# -- means of functions -------------------------------------------------------------------------------


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Whether the right class, given as a row, is among the `k` most probable."""
    labels = find("argmax")(y_true, -1)
    return find("cast")(find("nn.in_top_k")(to_tensor(y_pred), labels, k), "float32")


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Whether the right class, given as a number, is among the `k` most probable."""
    labels = find("reshape")(find("cast")(y_true, dtypes.int32), [-1])
    return find("cast")(find("nn.in_top_k")(to_tensor(y_pred), labels, k), "float32")


def accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether values are equal."""
    predicted = to_tensor(y_pred)
    return find("cast")(find("equal")(find("cast")(y_true, predicted.dtype), predicted), "float32")


def cosine_proximity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """The cosine of the angle between vectors."""
    unit = find("nn.l2_normalize")
    predicted = to_tensor(y_pred)
    return find("reduce_sum")(unit(find("cast")(y_true, predicted.dtype), axis) * unit(predicted, axis), axis)


cosine_similarity = cosine_proximity


def _mean_of(class_name: str, function: Callable, name: str = "", /, **defaults: Any) -> type:
    """The class of the mean of a function; its options come after or before `name` as in Keras."""
    options = [f"{key}={value!r}" for key, value in defaults.items()]
    usual = [f"name={name or function.__name__!r}", "dtype=None"]

    @taking(signature_of(", ".join([*options, *usual] if "k" in defaults else [*usual, *options])))
    def init(self: Any, given: dict[str, Any]) -> None:
        MeanMetricWrapper.__init__(self, function, **given)

    body = {"__init__": init, "__doc__": function.__doc__, "__module__": __name__}
    return type(class_name, (MeanMetricWrapper,), body)


Accuracy = _mean_of("Accuracy", accuracy)
BinaryAccuracy = _mean_of("BinaryAccuracy", penalties.binary_accuracy, threshold=0.5)
CategoricalAccuracy = _mean_of("CategoricalAccuracy", penalties.categorical_accuracy)
SparseCategoricalAccuracy = _mean_of("SparseCategoricalAccuracy", penalties.sparse_categorical_accuracy)
TopKCategoricalAccuracy = _mean_of("TopKCategoricalAccuracy", top_k_categorical_accuracy, k=5)
SparseTopKCategoricalAccuracy = _mean_of(
    "SparseTopKCategoricalAccuracy", sparse_top_k_categorical_accuracy, k=5
)
MeanSquaredError = _mean_of("MeanSquaredError", penalties.mean_squared_error)
MeanAbsoluteError = _mean_of("MeanAbsoluteError", penalties.mean_absolute_error)
MeanAbsolutePercentageError = _mean_of(
    "MeanAbsolutePercentageError", penalties.mean_absolute_percentage_error
)
MeanSquaredLogarithmicError = _mean_of(
    "MeanSquaredLogarithmicError", penalties.mean_squared_logarithmic_error
)
Hinge = _mean_of("Hinge", penalties.hinge)
SquaredHinge = _mean_of("SquaredHinge", penalties.squared_hinge)
CategoricalHinge = _mean_of("CategoricalHinge", penalties.categorical_hinge)
LogCoshError = _mean_of("LogCoshError", penalties.logcosh)
Poisson = _mean_of("Poisson", penalties.poisson)
KLDivergence = _mean_of("KLDivergence", penalties.kullback_leibler_divergence)
CosineSimilarity = _mean_of("CosineSimilarity", cosine_proximity, "cosine_similarity", axis=-1)
BinaryCrossentropy = _mean_of(
    "BinaryCrossentropy", penalties.binary_crossentropy, from_logits=False, label_smoothing=0
)
CategoricalCrossentropy = _mean_of(
    "CategoricalCrossentropy", penalties.categorical_crossentropy, from_logits=False, label_smoothing=0
)
SparseCategoricalCrossentropy = _mean_of(
    "SparseCategoricalCrossentropy", penalties.sparse_categorical_crossentropy, from_logits=False, axis=-1
)


class RootMeanSquaredError(Mean):
    """The root of the mean of squared differences."""

    __init__ = with_defaults(Mean.__init__, name="root_mean_squared_error")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        """Adds a batch."""
        y_true, y_pred = find("cast")(y_true, self._dtype), find("cast")(y_pred, self._dtype)
        squares = find("squared_difference")(y_pred, y_true)
        return super().update_state(squares, sample_weight=sample_weight)

    def result(self) -> Any:
        """The root so far."""
        return find("sqrt")(super().result())


class MeanRelativeError(Mean):
    """The mean of absolute differences, each over a number of `normalizer`."""

    def __init__(self, normalizer: Any, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.normalizer = find("cast")(normalizer, self._dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        """Adds a batch."""
        y_true, y_pred = find("cast")(y_true, self._dtype), find("cast")(y_pred, self._dtype)
        errors = find("div_no_nan")(find("abs")(y_true - y_pred), self.normalizer)
        return super().update_state(errors, sample_weight=sample_weight)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "normalizer": state.get_value(self.normalizer)}


class MeanTensor(Metric):
    """The mean of tensors, element by element."""

    def __init__(self, name: str | None = "mean_tensor", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self._shape: Any = None
        self._total: Any = None
        self._count: Any = None

    @property
    def total(self) -> Any:
        """The sums so far."""
        return self._total

    @property
    def count(self) -> Any:
        """How much each element counts so far."""
        return self._count

    def update_state(self, values: Any, sample_weight: Any = None) -> Any:
        """Adds a tensor, with a weight."""
        values = find("cast")(values, self._dtype)
        if self._total is None:
            self._shape = values.shape
            self._total, self._count = (self.add_weight(n, values.shape) for n in ("total", "count"))
        elif not values.shape.is_compatible_with(self._shape):
            raise ValueError(
                "MeanTensor input values must always have the same shape. Expected shape (set during the first call): "
                f"{self._shape}. Got: {values.shape}"
            )
        counts = find("ones_like")(values)
        if sample_weight is not None:
            values, weights = weighted(values, sample_weight)
            values, counts = values * weights, counts * weights
        writes = [self._total.assign_add(values, read_value=False)]
        return group(*writes, self._count.assign_add(counts, read_value=False))

    def result(self) -> Any:
        """The mean so far."""
        if self._total is None:
            raise ValueError(
                "MeanTensor does not have any result yet. Please call the MeanTensor instance or use "
                "`.update_state(value)` before retrieving the result."
            )
        return find("div_no_nan")(self._total.value(), self._count.value())


class MeanIoU(Metric):
    """The mean over classes of the overlap of true and predicted labels over their union."""

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.num_classes = num_classes
        self.total_cm = self.add_weight("total_confusion_matrix", (num_classes, num_classes))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Adds a batch."""
        flat = [find("reshape")(find("cast")(v, dtypes.int64), [-1]) for v in (y_true, y_pred)]
        weights = None
        if sample_weight is not None:
            weights = find("reshape")(weighted(to_tensor(y_pred), sample_weight)[1], [-1])
        result = find("math.confusion_matrix")(*flat, self.num_classes, weights=weights, dtype=self._dtype)
        return self.total_cm.assign_add(result, read_value=False)

    def result(self) -> Any:
        """The mean so far, over the classes seen."""
        matrix = self.total_cm.value()
        overlap = find("linalg.diag_part")(matrix)
        union = find("reduce_sum")(matrix, 0) + find("reduce_sum")(matrix, 1) - overlap
        seen = find("reduce_sum")(find("cast")(find("not_equal")(union, 0), self._dtype))
        return find("div_no_nan")(find("reduce_sum")(find("div_no_nan")(overlap, union)), seen)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_classes": self.num_classes}


# -- by name ------------------------------------------------------------------------------------------


def _known() -> dict[str, Any]:
    short = {"mse": "mean_squared_error", "mae": "mean_absolute_error", "cosine": "cosine_proximity"}
    short |= {"mape": "mean_absolute_percentage_error", "msle": "mean_squared_logarithmic_error"}
    short |= {"kld": "kullback_leibler_divergence"}
    short |= {k.upper(): v for k, v in short.items()}
    by_name = {**vars(penalties), **vars(counting), **globals()}
    return {**by_name, **{k: by_name[v] for k, v in short.items()}}


def serialize(metric: Any) -> Any:
    """A metric as a dictionary, a function as its name."""
    return serialize_keras_object(metric)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """A metric from what `serialize` gave."""
    return deserialize_keras_object(config, _known(), custom_objects, "metric function")


def get(identifier: Any) -> Any:
    """The metric of a name, or from a dictionary; a function or an object as it is."""
    if isinstance(identifier, (dict, str)):
        return deserialize(identifier)
    if callable(identifier):
        return identifier
    raise ValueError(f"Could not interpret metric function identifier: {identifier}")
