"""`tf.contrib.metrics`: rates, covariance, correlation, agreement and everything that was seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.metrics.base import collect, fitted, metric_variable, ratio
from tensorfleet.api.metrics.thresholds import KINDS, counts_at_thresholds
from tensorfleet.api.metrics.top_k import average_precision_at_top_k, precision_at_top_k, recall_at_top_k
from tensorfleet.api.variables.creation import create_variable
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes
from tensorfleet.base.arguments import function, signature_of
from tensorfleet.base.naming import export, find, publish
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys
from tensorfleet_legacy.contrib.metrics.metric_ops import _LAST


def _counted(kind: str) -> Callable:
    """The metric that counts one kind at each threshold, in a variable that no scope is around."""

    def counts(given: dict[str, Any]) -> tuple[Tensor, Tensor]:
        values, updates = counts_at_thresholds(which=(kind,), **given)
        return find("identity")(values[kind]), updates[kind]

    own = signature_of("predictions, labels, thresholds, weights=None")
    does = f"How many {KINDS[kind].replace('_', ' ')} there were so far, at each threshold."
    return function(own, f"streaming_{KINDS[kind]}_at_thresholds", counts, does)


for _kind, _name in KINDS.items():
    publish(_counted(_kind), f"contrib.metrics.streaming_{_name}_at_thresholds")
publish(find("confusion_matrix"), "contrib.metrics.confusion_matrix")


for _name in ("set_difference", "set_intersection", "set_size", "set_union"):
    publish(find(f"sets.{_name}"), f"contrib.metrics.{_name}")


# What the rates at thresholds count: the wrong ones, then the right ones.
_KINDS = {
    "false_positive_rate_at_thresholds": ("fp", "tn"),
    "false_negative_rate_at_thresholds": ("fn", "tp"),
}


def _rate(wrong: str, right: str, name: str, at_thresholds: bool) -> Callable:
    """The share of the wrong ones of those that are labeled alike."""
    more = "thresholds, " if at_thresholds else ""

    def rate(given: dict[str, Any]) -> tuple[Tensor, Tensor]:
        collections = [given.pop(c) for c in ("metrics_collections", "updates_collections")]
        with variable_scope(given.pop("name"), name, [given["predictions"], given["labels"]]):
            if at_thresholds:
                now, then = counts_at_thresholds(which=_KINDS[name], **given)
                bad, good, update_bad, update_good = (x for pair in (now, then) for x in pair.values())
            else:
                counts = [find(f"metrics.{kind}")(**given) for kind in (wrong, right)]
                (bad, update_bad), (good, update_good) = counts
            value = ratio(bad, bad + good, "value")
            return collect(value, ratio(update_bad, update_bad + update_good, "update_op"), *collections)

    does = f"The {name.replace('_', ' ')} of all predictions so far."
    own = signature_of(f"predictions, labels, {more}{_LAST}")
    return function(own, f"streaming_{name}", rate, does)


for _wrong, _right, _name in (
    ("false_positives", "true_negatives", "false_positive_rate"),
    ("false_negatives", "true_positives", "false_negative_rate"),
):
    publish(_rate(_wrong, _right, _name, False), f"contrib.metrics.streaming_{_name}")
    _name += "_at_thresholds"
    publish(_rate(_wrong, _right, _name, True), f"contrib.metrics.streaming_{_name}")


def _comoment(p: Tensor, label: Tensor, weights: Any, means: tuple, count: Any) -> tuple[Tensor, Tensor]:
    """The increment of a batch to the sum of products of deviations, and the count after it."""
    total = find("reduce_sum")
    shares = find("ones_like")(p) if weights is None else find("ones_like")(p) * weights
    number = total(shares)
    after = count.assign_add(number)
    before = after - number
    result, past = [], []
    for values, mean in zip((p, label), means, strict=True):
        batch = find("div_no_nan")(total(values * shares), number)
        delta = find("div_no_nan")((batch - mean) * number, after)
        new = mean.assign_add(delta)
        result.append(batch)
        past.append(new - delta)
    own = total((p - result[0]) * (label - result[1]) * shares)
    across = (past[0] - result[0]) * (past[1] - result[1])
    return own + across * find("div_no_nan")(before * number, after), after


@export("contrib.metrics.streaming_covariance")
def streaming_covariance(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The unbiased covariance of all predictions and labels so far; NaN before there are two."""
    with variable_scope(name, "covariance", [predictions, labels]):
        p, label, weights = fitted(predictions, labels, weights)
        p, label = (find("cast")(x, dtypes.float32) for x in (p, label))
        if weights is not None:
            weights = find("cast")(weights, dtypes.float32)
        names = ("count", "mean_prediction", "mean_label", "comoment")
        kept: list[Any] = [metric_variable([], dtypes.float32, n) for n in names]
        count, mean_p, mean_l, comoment = kept
        added, after = _comoment(p, label, weights, (mean_p, mean_l), count)
        updated = comoment.assign_add(added)
        nan = find("constant")(float("nan"), dtypes.float32)
        value = find("where")(count <= 1.0, nan, comoment / (count - 1.0), name="covariance")
        update = find("where")(after <= 1.0, nan, updated / (after - 1.0), name="update_op")
        return collect(value, update, metrics_collections, updates_collections)


@export("contrib.metrics.streaming_pearson_correlation")
def streaming_pearson_correlation(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Pearson's correlation of all predictions and labels so far."""
    with variable_scope(name, "pearson_r", [predictions, labels]):
        p, label, weights = fitted(predictions, labels, weights)
        both, update_both = streaming_covariance(p, label, weights, name="covariance")
        first, update_first = streaming_covariance(p, p, weights, name="variance_predictions")
        second, update_second = streaming_covariance(label, label, weights, name="variance_labels")
        root = find("sqrt")
        value = find("truediv")(both, root(first) * root(second), name="pearson_r")
        update = find("truediv")(update_both, root(update_first) * root(update_second), name="update_op")
        return collect(value, update, metrics_collections, updates_collections)


@export("contrib.metrics.count")
def count(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How many values there were so far, or the sum of their weights."""
    with variable_scope(name, "count", [values, weights]):
        values = to_tensor(values)
        kept = metric_variable([], dtypes.float32, "count")
        if weights is None:
            number = find("cast")(find("size")(values), dtypes.float32)
        else:
            values, _, weights = fitted(values, None, weights)
            shares = find("ones_like")(values, dtype=dtypes.float32) * find("cast")(weights, dtypes.float32)
            number = find("reduce_sum")(shares)
        update = kept.assign_add(number)
        return collect(find("identity")(kept), update, metrics_collections, updates_collections)


@export("contrib.metrics.streaming_concat")
def streaming_concat(
    values: Any,
    axis: int = 0,
    max_size: int | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """All values so far, one behind the other along an axis; no more than `max_size`."""
    with variable_scope(name, "streaming_concat", [values]):
        values = to_tensor(values)
        if values.shape.rank is None:
            raise ValueError("`values` must have known statically known rank")
        shape = values.shape.as_list()
        at = axis + len(shape) if axis < 0 else axis
        if not 0 <= at < len(shape):
            raise ValueError(f"axis = {at!r} not in [0, {len(shape)!r})")
        if any(d is None for i, d in enumerate(shape) if i != at):
            raise ValueError(
                "all dimensions of `values` other than the dimension to concatenate must have static size"
            )
        kept = create_variable(
            initial_value=lambda: find("zeros")(
                [0 if i == at else d for i, d in enumerate(shape)], values.dtype
            ),
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
            validate_shape=False,
            name="array",
        )
        known = [None if i == at else d for i, d in enumerate(shape)]
        now = find("identity")(kept)
        now.set_shape(known)
        more = values
        if max_size is not None:
            room = max_size - find("shape")(now)[at]
            sizes = [-1] * len(shape)
            begin = [0] * len(shape)
            limited = find("minimum")(room, find("shape")(values)[at])
            more = find("slice")(values, begin, [limited if i == at else s for i, s in enumerate(sizes)])
        update = find("assign")(kept, find("concat")([now, more], at), validate_shape=False)
        value = find("identity")(kept)
        value.set_shape(known)
        return collect(value, update, metrics_collections, updates_collections)


@export("contrib.metrics.cohen_kappa")
def cohen_kappa(
    labels: Any,
    predictions_idx: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """How far predicted classes agree with the labels beyond chance: 1 is always, 0 as often as by chance."""
    if num_classes < 2:
        raise ValueError(f"`num_classes` must be >= 2.Found: {num_classes}")
    with variable_scope(name, "cohen_kappa", [labels, predictions_idx]):
        predictions, labels, weights = fitted(predictions_idx, labels, weights)
        flat = [None if x is None else find("reshape")(x, [-1]) for x in (labels, predictions, weights)]
        rows, columns = (find("cast")(x, dtypes.int32) for x in flat[:2])
        shares = find("ones_like")(flat[0], dtype=dtypes.float32) if flat[2] is None else flat[2]
        shares = find("cast")(shares, dtypes.float32)
        agreed = find("where")(find("equal")(rows, columns), shares, find("zeros_like")(shares))
        kept: list[Any] = [
            metric_variable([num_classes], dtypes.float32, n) for n in ("po", "pe_row", "pe_col")
        ]
        parts = zip(kept, (rows, rows, columns), (agreed, shares, shares), strict=True)
        updates = [k.assign_add(find("unsorted_segment_sum")(x, at, num_classes)) for k, at, x in parts]
        value, updated = _kappa(kept, "value"), _kappa(updates, "update_op")
        return collect(value, updated, metrics_collections, updates_collections)


def _kappa(counts: list[Any], name: str) -> Tensor:
    """The share of agreement beyond chance, from how often each class was right, a label and a prediction."""
    agreed, labeled, predicted = counts
    total = find("reduce_sum")
    number = total(labeled)
    chance = find("div_no_nan")(total(to_tensor(labeled) * predicted), number)
    result = find("div_no_nan")(number - total(agreed), number - chance)
    return find("where")(number > 0, 1.0 - result, find("zeros_like")(result), name=name)


# Metrics of classes that are ranked already: what measures them, and their arguments.
_RANKED = {
    "streaming_sparse_average_precision_at_top_k": (average_precision_at_top_k, "top_k_predictions, labels"),
    "streaming_sparse_precision_at_top_k": (precision_at_top_k, "top_k_predictions, labels, class_id=None"),
    "sparse_recall_at_top_k": (recall_at_top_k, "labels, top_k_predictions, class_id=None"),
}


def _ranked(name: str, metric: Callable, first: str) -> Callable:
    def measured(given: dict[str, Any]) -> tuple[Tensor, Tensor]:
        return metric(predictions_idx=given.pop("top_k_predictions"), **given)

    does = f"`{metric.__name__}` of classes that are ranked already, of all items so far."
    return function(signature_of(f"{first}, {_LAST}"), name, measured, does)


for _name, (_metric, _first) in _RANKED.items():
    publish(_ranked(_name, _metric, _first), f"contrib.metrics.{_name}")
