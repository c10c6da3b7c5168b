"""`tf.keras.metrics`: the metrics themselves, and metrics by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet import dtypes
from tensorfleet.api import find
from tensorfleet.arguments import signature_of, taking
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.keras import penalties
from tensorfleet.keras.metric import Mean, MeanMetricWrapper, Metric, Sum, weighted
from tensorfleet.keras.serializing import deserialize_keras_object, serialize_keras_object
from tensorfleet.ops.basic import group

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


def _mean_of(class_name: str, function: Callable, name: str, /, **defaults: Any) -> type:
    """The class of the mean of a function; its options come after or before `name` as in Keras."""
    options = [f"{key}={value!r}" for key, value in defaults.items()]
    usual = [f"name={name!r}", "dtype=None"]

    @taking(signature_of(", ".join([*options, *usual] if "k" in defaults else [*usual, *options])))
    def init(self: Any, given: dict[str, Any]) -> None:
        MeanMetricWrapper.__init__(self, function, **given)

    body = {"__init__": init, "__doc__": function.__doc__, "__module__": __name__}
    return type(class_name, (MeanMetricWrapper,), body)


Accuracy = _mean_of("Accuracy", accuracy, "accuracy")
BinaryAccuracy = _mean_of("BinaryAccuracy", penalties.binary_accuracy, "binary_accuracy", threshold=0.5)
CategoricalAccuracy = _mean_of("CategoricalAccuracy", penalties.categorical_accuracy, "categorical_accuracy")
SparseCategoricalAccuracy = _mean_of(
    "SparseCategoricalAccuracy", penalties.sparse_categorical_accuracy, "sparse_categorical_accuracy"
)
TopKCategoricalAccuracy = _mean_of(
    "TopKCategoricalAccuracy", top_k_categorical_accuracy, "top_k_categorical_accuracy", k=5
)
SparseTopKCategoricalAccuracy = _mean_of(
    "SparseTopKCategoricalAccuracy",
    sparse_top_k_categorical_accuracy,
    "sparse_top_k_categorical_accuracy",
    k=5,
)
MeanSquaredError = _mean_of("MeanSquaredError", penalties.mean_squared_error, "mean_squared_error")
MeanAbsoluteError = _mean_of("MeanAbsoluteError", penalties.mean_absolute_error, "mean_absolute_error")
MeanAbsolutePercentageError = _mean_of(
    "MeanAbsolutePercentageError",
    penalties.mean_absolute_percentage_error,
    "mean_absolute_percentage_error",
)
MeanSquaredLogarithmicError = _mean_of(
    "MeanSquaredLogarithmicError",
    penalties.mean_squared_logarithmic_error,
    "mean_squared_logarithmic_error",
)
Hinge = _mean_of("Hinge", penalties.hinge, "hinge")
SquaredHinge = _mean_of("SquaredHinge", penalties.squared_hinge, "squared_hinge")
CategoricalHinge = _mean_of("CategoricalHinge", penalties.categorical_hinge, "categorical_hinge")
LogCoshError = _mean_of("LogCoshError", penalties.logcosh, "logcosh")
Poisson = _mean_of("Poisson", penalties.poisson, "poisson")
KLDivergence = _mean_of("KLDivergence", penalties.kullback_leibler_divergence, "kullback_leibler_divergence")
CosineSimilarity = _mean_of("CosineSimilarity", cosine_proximity, "cosine_similarity", axis=-1)
BinaryCrossentropy = _mean_of(
    "BinaryCrossentropy",
    penalties.binary_crossentropy,
    "binary_crossentropy",
    from_logits=False,
    label_smoothing=0,
)
CategoricalCrossentropy = _mean_of(
    "CategoricalCrossentropy",
    penalties.categorical_crossentropy,
    "categorical_crossentropy",
    from_logits=False,
    label_smoothing=0,
)
SparseCategoricalCrossentropy = _mean_of(
    "SparseCategoricalCrossentropy",
    penalties.sparse_categorical_crossentropy,
    "sparse_categorical_crossentropy",
    from_logits=False,
    axis=-1,
)


class RootMeanSquaredError(Mean):
    """The root of the mean of squared differences."""

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        """Adds a batch."""
        y_true, y_pred = find("cast")(y_true, self._dtype), find("cast")(y_pred, self._dtype)
        squares = find("squared_difference")(y_pred, y_true)
        return super().update_state(squares, sample_weight=sample_weight)

    def result(self) -> Any:
        """The root so far."""
        return find("sqrt")(super().result())


# -- counts at thresholds ------------------------------------------------------------------------------


class _Counts(Metric):
    """Right and wrong answers at thresholds: how many there are of some of the four kinds."""

    _kinds: tuple[str, ...] = ()

    def _start(self, thresholds: Any, name: str | None, dtype: Any) -> None:
        Metric.__init__(self, name=name, dtype=dtype)
        self.thresholds = [0.5] if thresholds is None else np.atleast_1d(thresholds).tolist()
        if any(t < 0 or t > 1 for t in self.thresholds):
            raise ValueError(f"Threshold values must be in [0, 1]. Invalid values: {self.thresholds}")
        self._given = thresholds
        for kind in self._kinds:
            setattr(self, kind, self.add_weight(kind, shape=(len(self.thresholds),)))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Adds a batch."""
        predicted = find("cast")(y_pred, self._dtype)
        true = find("cast")(y_true, self._dtype)
        weights = None
        if sample_weight is not None:
            given = find("cast")(sample_weight, self._dtype)
            rank = predicted.shape.ndims or 0
            while (given.shape.ndims or 0) < rank:
                given = find("expand_dims")(given, -1)
            weights = find("broadcast_to")(given, find("shape")(predicted))
            weights = find("reshape")(weights, [1, -1])
        limits = find("constant")(np.reshape(self.thresholds, [-1, 1]), self._dtype)
        positive = find("greater")(find("reshape")(predicted, [1, -1]), limits)
        right = find("cast")(find("reshape")(true, [1, -1]), dtypes.bool_)
        right = find("broadcast_to")(right, find("shape")(positive))
        no = find("logical_not")
        pairs = {
            "true_positives": (right, positive),
            "false_positives": (no(right), positive),
            "true_negatives": (no(right), no(positive)),
            "false_negatives": (right, no(positive)),
        }
        writes = []
        for kind in self._kinds:
            counted = find("cast")(find("logical_and")(*pairs[kind]), self._dtype)
            counted = counted if weights is None else counted * weights
            writes.append(getattr(self, kind).assign_add(find("reduce_sum")(counted, 1), read_value=False))
        return group(*writes)

    def _value(self, made: Any) -> Any:
        """A number for one threshold, else one for each."""
        return made[0] if len(self.thresholds) == 1 else made

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "thresholds": self._given}


class _Count(_Counts):
    """How many answers are of one kind."""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        self._start(thresholds, name, dtype)

    def result(self) -> Any:
        """How many so far."""
        return self._value(getattr(self, self._kinds[0]).value())


class TruePositives(_Count):
    """How many are rightly called true."""

    _kinds = ("true_positives",)


class FalsePositives(_Count):
    """How many are wrongly called true."""

    _kinds = ("false_positives",)


class TrueNegatives(_Count):
    """How many are rightly called false."""

    _kinds = ("true_negatives",)


class FalseNegatives(_Count):
    """How many are wrongly called false."""

    _kinds = ("false_negatives",)


class _Share(_Counts):
    """The true positives among them and others."""

    _other = ""

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        if top_k is not None:
            raise ValueError(
                f"{type(self).__name__} does not support `top_k` here: use tf.metrics.precision_at_k or "
                "tf.metrics.recall_at_k."
            )
        self.top_k, self.class_id = top_k, class_id
        self._start(thresholds, name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Adds a batch."""
        if self.class_id is not None:
            y_true, y_pred = to_tensor(y_true)[..., self.class_id], to_tensor(y_pred)[..., self.class_id]
        return super().update_state(y_true, y_pred, sample_weight)

    def result(self) -> Any:
        """The share so far."""
        right, other = (getattr(self, kind).value() for kind in ("true_positives", self._other))
        return self._value(find("div_no_nan")(right, right + other))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "top_k": self.top_k, "class_id": self.class_id}


class Precision(_Share):
    """The share of the answers called true that are."""

    _kinds, _other = ("true_positives", "false_positives"), "false_positives"


class Recall(_Share):
    """The share of the true answers that are called so."""

    _kinds, _other = ("true_positives", "false_negatives"), "false_negatives"


class AUC(_Counts):
    """The area under the ROC curve or, with `curve="PR"`, under that of precision over recall."""

    _kinds = ("true_positives", "true_negatives", "false_positives", "false_negatives")

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: Any = None,
        thresholds: Any = None,
    ) -> None:
        if curve not in ("ROC", "PR"):
            raise ValueError(f'Invalid AUC curve value "{curve}".')
        if summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(f'Invalid AUC summation method value "{summation_method}".')
        if thresholds is None and num_thresholds <= 1:
            raise ValueError("`num_thresholds` must be > 1.")
        if thresholds is not None:
            inner = sorted(thresholds)
        else:
            inner = [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
        self.num_thresholds = len(inner) + 2
        self.curve, self.summation_method = curve, summation_method
        self._start(None, name, dtype)
        # Below all values and above them all, so that the curve has both its ends.
        self.thresholds = [-1e-7, *inner, 1.0 + 1e-7]
        self._given = thresholds

    def _start(self, thresholds: Any, name: str | None, dtype: Any) -> None:
        Metric.__init__(self, name=name, dtype=dtype)
        for kind in self._kinds:
            setattr(self, kind, self.add_weight(kind, shape=(self.num_thresholds,)))

    def result(self) -> Any:
        """The area so far."""
        tp, tn, fp, fn = (getattr(self, kind).value() for kind in self._kinds)
        divide = find("div_no_nan")
        if self.curve == "PR" and self.summation_method == "interpolation":
            return self._interpolated_pr(tp, fp, fn)
        recall = divide(tp, tp + fn)
        x, y = (divide(fp, fp + tn), recall) if self.curve == "ROC" else (recall, divide(tp, tp + fp))
        n = self.num_thresholds
        if self.summation_method == "interpolation":
            heights = (y[: n - 1] + y[1:]) / 2.0
        else:
            pick = find("minimum" if self.summation_method == "minoring" else "maximum")
            heights = pick(y[: n - 1], y[1:])
        return find("reduce_sum")((x[: n - 1] - x[1:]) * heights)

    def _interpolated_pr(self, tp: Any, fp: Any, fn: Any) -> Any:
        """The area with precision interpolated between thresholds by the counts, not by a line."""
        n, divide = self.num_thresholds, find("div_no_nan")
        called = tp + fp
        steps, drops = tp[: n - 1] - tp[1:], called[: n - 1] - called[1:]
        slope = divide(steps, find("maximum")(drops, 0))
        start = tp[1:] - slope * called[1:]
        both = find("logical_and")(called[: n - 1] > 0, called[1:] > 0)
        ratio = find("where")(
            both,
            divide(called[: n - 1], find("maximum")(called[1:], 0)),
            find("ones_like")(called[1:]),
        )
        part = divide(slope * (steps + start * find("log")(ratio)), find("maximum")(tp[1:] + fn[1:], 0))
        return find("reduce_sum")(part)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["thresholds"]
        config.update(
            num_thresholds=self.num_thresholds, curve=self.curve, summation_method=self.summation_method
        )
        return config if self._given is None else {**config, "thresholds": list(self._given)}


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
        made = find("math.confusion_matrix")(*flat, self.num_classes, weights=weights, dtype=self._dtype)
        return self.total_cm.assign_add(made, read_value=False)

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
    found = {**vars(penalties), **globals()}
    return {**found, **{k: found[v] for k, v in short.items()}}


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
