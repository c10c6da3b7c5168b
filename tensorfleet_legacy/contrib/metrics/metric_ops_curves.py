"""`tf.contrib.metrics`: curves of rates over thresholds, and the areas under them."""

from __future__ import annotations

from collections import namedtuple
from statistics import NormalDist
from typing import Any

from tensorfleet.api.metrics.base import fitted, metric_variable
from tensorfleet.api.metrics.thresholds import _EPSILON, KINDS, _evenly, counts_at_thresholds
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, add_to_collections, control_dependencies, name_scope
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.contrib.metrics.metric_ops_statistics import streaming_concat

AucData = namedtuple("AucData", ["auc", "lower", "upper"])
PrecisionRecallData = namedtuple(
    "PrecisionRecallData", ["tp", "fp", "tn", "fn", "precision", "recall", "thresholds"]
)


def _check_curve(curve: str) -> None:
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")


def _kept(value: Any, update: Any, metrics_collections: Any, updates_collections: Any) -> tuple[Any, Any]:
    if metrics_collections:
        add_to_collections(metrics_collections, value)
    if updates_collections:
        add_to_collections(updates_collections, update)
    return value, update


def streaming_curve_points(
    labels: Any = None,
    predictions: Any = None,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """The points, [thresholds, 2], of the curve of both rates ("ROC"), or of recall and precision ("PR")."""
    with variable_scope(name, "curve_points", (labels, predictions, weights)):
        _check_curve(curve)
        c, updates = counts_at_thresholds(labels, predictions, _evenly(num_thresholds), weights, tuple(KINDS))
        small = 1e-6
        recall = (c["tp"] + small) / (c["tp"] + c["fn"] + small)
        if curve == "ROC":
            pair = c["fp"] / (c["fp"] + c["tn"] + small), recall
        else:
            pair = recall, (c["tp"] + small) / (c["tp"] + c["fp"] + small)
        points = find("stack")(pair, axis=1)
        return _kept(points, group(*updates.values()), metrics_collections, updates_collections)


def _zero_or_one(labels: Tensor) -> list:
    words = "labels must be 0 or 1, at least one is "
    return [
        find("assert_greater_equal")(labels, find("zeros_like")(labels), message=f"{words}<0"),
        find("assert_less_equal")(labels, find("ones_like")(labels), message=f"{words}>1"),
    ]


def _flat(values: Any, kind: Any) -> Tensor:
    return find("reshape")(find("cast")(values, kind), [-1])


def streaming_dynamic_auc(
    labels: Any,
    predictions: Any,
    curve: str = "ROC",
    metrics_collections: Any = (),
    updates_collections: Any = (),
    name: str | None = None,
    weights: Any = None,
) -> tuple[Tensor, Any]:
    """The area under the curve of all predictions so far, exactly: they are kept."""
    _check_curve(curve)
    with variable_scope(name, "dynamic_auc"):
        labels, predictions = to_tensor(labels), to_tensor(predictions)
        labels.shape.assert_is_compatible_with(predictions.shape)
        scores, truth = _flat(predictions, dtypes.float64), _flat(labels, dtypes.int64)
        given = {"labels": truth, "preds": scores}
        if weights is not None:
            given["weights"] = _flat(weights, dtypes.float64)
        with control_dependencies(_zero_or_one(truth)):
            kept = [streaming_concat(values, name=f"concat_{label}") for label, values in given.items()]
        seen_labels, seen_scores, *rest = (value for value, _ in kept)
        shares = rest[0] if rest else find("ones_like")(seen_scores)
        area = _exact_area(seen_labels, seen_scores, shares, curve)
        update = group(*(change for _, change in kept))
        return _kept(area, update, metrics_collections, updates_collections)


def _exact_area(labels: Tensor, scores: Tensor, weights: Tensor, curve: str) -> Tensor:
    """The area by trapezoids between the points after each group of equal scores; zero for labels of one kind."""
    order = find("argsort")(scores, direction="DESCENDING", stable=True)
    scores, labels, weights = (find("gather")(x, order) for x in (scores, labels, weights))
    _, _, counts = find("unique_with_counts")(scores)
    ends = find("pad")(find("cumsum")(counts), [[1, 0]])
    positive = find("cast")(labels, dtypes.float64) * weights

    def at_ends(values: Tensor) -> Tensor:
        return find("gather")(find("pad")(find("cumsum")(values), [[1, 0]]), ends)

    rights, total = at_ends(positive), find("reduce_sum")(positive)
    if curve == "ROC":
        x = find("div_no_nan")(at_ends(weights - positive), find("reduce_sum")(weights - positive))
        y = find("div_no_nan")(rights, total)
    else:
        x, y = find("div_no_nan")(rights, total), find("div_no_nan")(rights, at_ends(weights))
        y = find("where")(ends > 0, y, find("ones_like")(y))
    area = find("reduce_sum")(find("abs")(x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2)
    one_kind = find("logical_or")(find("equal")(total, 0), find("equal")(total, find("reduce_sum")(weights)))
    return find("where")(one_kind, find("zeros_like")(area), area)


def auc_with_confidence_intervals(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    alpha: float = 0.95,
    logit_transformation: bool = True,
    metrics_collections: Any = (),
    updates_collections: Any = (),
    name: str | None = None,
) -> tuple[AucData, Any]:
    """The area under the ROC curve of all predictions so far, and an interval around it (DeLong et al. 1988)."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1; currently {alpha:.02f}")
    with variable_scope(name, "auc_with_confidence_intervals", [labels, predictions, weights]):
        predictions = to_tensor(predictions)
        weights = find("ones_like")(predictions) if weights is None else weights
        predictions, labels, weights = fitted(predictions, labels, weights)
        shares = _flat(weights, dtypes.float32)
        scores, truth = _flat(predictions, dtypes.float64), _flat(labels, dtypes.int64)
        enough = find("reduce_sum")(shares) >= 1.0
        both = find("logical_and")(
            find("equal")(find("reduce_min")(truth), 0), find("equal")(find("reduce_max")(truth), 1)
        )
        # A batch without weight is left out: as one of no elements.
        some = find("cond")(enough, lambda: find("size")(truth), lambda: 0)
        with control_dependencies(_zero_or_one(truth)):
            kept = [
                streaming_concat(values[:some], name=f"concat_{label}")
                for values, label in ((truth, "labels"), (scores, "preds"), (shares, "weights"))
            ]
        (seen_labels, _), (seen_scores, _), (seen_weights, _) = kept
        result = _with_interval(seen_labels, seen_scores, seen_weights, alpha, logit_transformation)
        valid = find("logical_and")(both, enough)
        data = AucData(*(find("where")(valid, v, find("zeros_like")(v)) for v in result))
        update = group(*(change for _, change in kept))
        return _kept(data, update, metrics_collections, updates_collections)


def _placements(truth: Tensor, weights: Tensor, groups: Tensor) -> Tensor:
    """For each score, the share of the others' weight below it; those of equal scores count half."""
    totals = find("segment_sum")(weights * truth, groups)
    below = find("cumsum")(totals, exclusive=True) + totals / 2.0
    return find("gather")(below / (find("reduce_sum")(totals) + _EPSILON), groups)


def _with_interval(
    labels: Tensor, scores: Tensor, weights: Tensor, alpha: float, logit: bool
) -> tuple[Tensor, Tensor, Tensor]:
    order = find("argsort")(scores, stable=True)
    scores, labels, weights = (find("gather")(x, order) for x in (scores, labels, weights))
    _, groups = find("unique")(scores)
    truth = find("cast")(labels, dtypes.float32)
    sums, areas, variances = [], [], []
    for own, turn in ((1.0 - truth, True), (truth, False)):
        places = _placements(1.0 - own, weights, groups)
        places = 1.0 - places if turn else places
        total = find("reduce_sum")(weights * own)
        area = find("reduce_sum")(weights * own * places) / (total + _EPSILON)
        off = find("reduce_sum")(weights * own * find("square")(places - area))
        sums.append(total)
        areas.append(area)
        variances.append(off / (total - 1.0 + _EPSILON) / (total + _EPSILON))
    area = find("where")(sums[0] < sums[1], areas[1], areas[0])
    error = find("sqrt")(variances[0] + variances[1])
    lower, upper = _interval(area, error, NormalDist().inv_cdf((1.0 - alpha) / 2.0), logit)
    sure = find("logical_or")(find("equal")(area, 1.0), find("equal")(area, 0.0))
    return area, find("where")(sure, area, lower), find("where")(sure, area, upper)


def _interval(area: Tensor, error: Tensor, z: float, logit: bool) -> tuple[Tensor, Tensor]:
    if not logit:
        return area + z * error, area - z * error
    middle = find("log")(area / (1.0 - area + _EPSILON))
    width = z * error / (area * (1.0 - area + _EPSILON))
    lower, upper = (1.0 / (1.0 + find("exp")(-x) + _EPSILON) for x in (middle + width, middle - width))
    return lower, upper


def precision_recall_at_equal_thresholds(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> tuple[PrecisionRecallData, Any]:
    """Counts, precision and recall at thresholds at equal distances, from one bucket for each prediction."""
    count = 201 if num_thresholds is None else num_thresholds
    labels, predictions = to_tensor(labels), to_tensor(predictions)
    find("assert_type")(labels, dtypes.bool_)
    with variable_scope(name, "precision_recall_at_equal_thresholds", (labels, predictions, weights)):
        words = "predictions must be in [0, 1]"
        checks = [
            find("assert_greater_equal")(predictions, find("cast")(0.0, predictions.dtype), message=words),
            find("assert_less_equal")(predictions, find("cast")(1.0, predictions.dtype), message=words),
        ]
        with control_dependencies(checks):
            p, y, w = fitted(predictions, labels, 1.0 if weights is None else weights)
        kind = dtypes.float64
        truth, share = find("cast")(y, kind), find("cast")(w, kind)
        buckets = _flat(find("floor")(p * (count - 1)), dtypes.int32)
        with name_scope("variables"):
            kept = [metric_variable([count], kind, f"{label}_buckets") for label in ("tp", "fp")]
        sums, updates = [], []
        parts = zip(("tp", "fp"), (truth * share, (1.0 - truth) * share), kept, strict=True)
        for label, values, variable in parts:
            locking = True if use_locking is None else use_locking
            updates.append(
                find("scatter_add")(variable, buckets, find("reshape")(values, [-1]), use_locking=locking)
            )
            sums.append(find("cumsum")(variable, reverse=True, name=label))
        tp, fp = sums
        tn, fn = fp[0] - fp, tp[0] - tp
        precision, recall = (tp / find("maximum")(tp + x, to_tensor(_EPSILON, kind)) for x in (fp, fn))
        cuts = find("linspace")(0.0, 1.0, count)
        result = (tp, fp, tn, fn, precision, recall, cuts)
        return PrecisionRecallData(*(find("cast")(x, p.dtype) for x in result)), group(*updates)


def auc_using_histogram(
    boolean_labels: Any,
    scores: Any,
    score_range: Any,
    nbins: int = 100,
    collections: Any = None,
    check_shape: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """The area under the ROC curve from histograms of the scores of true and of false labels."""
    places = [GraphKeys.LOCAL_VARIABLES] if collections is None else collections
    with variable_scope(name, "auc_using_histogram", [boolean_labels, scores, score_range]):
        scores, labels = find("contrib.framework.remove_squeezable_dimensions")(scores, boolean_labels)
        ends = to_tensor(score_range, name="score_range")
        if check_shape:
            find("assert_rank")(labels, 1)
            labels.shape.assert_is_compatible_with(scores.shape)
        kept, updates = [], []
        for mask, label in ((labels, "true"), (find("logical_not")(labels), "false")):
            some = find("histogram_fixed_width")(
                find("boolean_mask")(scores, mask), ends, nbins, dtype=dtypes.int64
            )
            variable = find("get_variable")(
                f"hist_accumulate/hist_{label}_acc",
                [nbins],
                dtypes.int64,
                find("zeros_initializer")(),
                collections=places,
                trainable=False,
            )
            updates.append(variable.assign_add(some))
            share = find("truediv")(variable, find("reduce_sum")(variable))
            kept.append(find("cast")(find("reverse")(share, [0]), dtypes.float32))
        heights = find("cumsum")(kept[0])
        before = find("cumsum")(kept[0], exclusive=True)
        area = find("reduce_sum")(kept[1] * (heights + before) / 2.0, name="auc")
        return area, group(*updates, name="update_op")


def streaming_recall_at_k(
    predictions: Any,
    labels: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The share of items whose label is among the k highest predictions."""
    among = find("cast")(find("nn.in_top_k")(predictions, labels, k), dtypes.float32)
    return find("metrics.mean")(
        among, weights, metrics_collections, updates_collections, name or f"recall_at_{k}"
    )
