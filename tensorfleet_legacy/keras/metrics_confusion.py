"""`tf.keras.metrics`: right and wrong answers counted at thresholds, and what is computed from the counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.keras.metrics_base import Metric

_LEAST = -1e10  # below all answers


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
        self.top_k, self.class_id = top_k, class_id
        self._start(thresholds, name, dtype)
        if thresholds is None and top_k is not None:
            self.thresholds = [_LEAST]

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Adds a batch."""
        if self.top_k is not None:
            y_pred = _only_top(to_tensor(y_pred), self.top_k)
        if self.class_id is not None:
            y_true, y_pred = to_tensor(y_true)[..., self.class_id], to_tensor(y_pred)[..., self.class_id]
        return super().update_state(y_true, y_pred, sample_weight)

    def result(self) -> Any:
        """The share so far."""
        right, other = (getattr(self, kind).value() for kind in ("true_positives", self._other))
        return self._value(find("div_no_nan")(right, right + other))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "top_k": self.top_k, "class_id": self.class_id}


def _only_top(predicted: Any, k: int) -> Any:
    """The `k` greatest answers of each example; what is less than all, for others."""
    places = find("nn.top_k")(predicted, k, sorted=False)[1]
    kept = find("reduce_sum")(find("one_hot")(places, predicted.shape.as_list()[-1], axis=-1), -2)
    return predicted * kept + _LEAST * (1 - kept)


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

    def interpolate_pr_auc(self) -> Any:
        """The area under the curve of precision over recall, so far."""
        tp, _, fp, fn = (getattr(self, kind).value() for kind in self._kinds)
        return self._interpolated_pr(tp, fp, fn)


class _AtOther(_Counts):
    """One share where the other is at least some value: at the best of evenly spread thresholds."""

    _kinds = ("true_positives", "true_negatives", "false_positives", "false_negatives")

    def _at(self, value: float, what: str, count: int, name: str | None, dtype: Any) -> None:
        if not 0 <= value <= 1:
            raise ValueError(f"`{what}` must be in the range [0, 1].")
        if count <= 0:
            raise ValueError("`num_thresholds` must be > 0.")
        self.value, self.num_thresholds = value, count
        spread = [(i + 1) / (count - 1) for i in range(count - 2)] if count > 1 else []
        self._start([0.0, *spread, 1.0] if count > 1 else [0.5], name, dtype)

    def _shares(self) -> tuple[Any, Any]:
        tp, tn, fp, fn = (getattr(self, kind).value() for kind in self._kinds)
        divide = find("div_no_nan")
        return divide(tp, tp + fn), divide(tn, tn + fp)

    def _best(self, wanted: Any, other: Any) -> Any:
        """The share at the threshold where the other one is nearest to its value."""
        place = find("argmin")(find("abs")(other - self.value), output_type=dtypes.int32)
        return wanted[place]

    def get_config(self) -> dict[str, Any]:
        config = Metric.get_config(self)
        return {**config, "num_thresholds": self.num_thresholds, self._option: self.value}

    _option = ""


class SensitivityAtSpecificity(_AtOther):
    """The share of the true answers that are called so, where `specificity` of the false are."""

    _option = "specificity"

    def __init__(
        self, specificity: float, num_thresholds: int = 200, name: str | None = None, dtype: Any = None
    ) -> None:
        self.specificity = specificity
        self._at(specificity, "specificity", num_thresholds, name, dtype)

    def result(self) -> Any:
        """The share so far."""
        sensitivity, specificity = self._shares()
        return self._best(sensitivity, specificity)


class SpecificityAtSensitivity(_AtOther):
    """The share of the false answers that are called so, where `sensitivity` of the true are."""

    _option = "sensitivity"

    def __init__(
        self, sensitivity: float, num_thresholds: int = 200, name: str | None = None, dtype: Any = None
    ) -> None:
        self.sensitivity = sensitivity
        self._at(sensitivity, "sensitivity", num_thresholds, name, dtype)

    def result(self) -> Any:
        """The share so far."""
        sensitivity, specificity = self._shares()
        return self._best(specificity, sensitivity)
