"""`tf.contrib.training`: examples drawn again by rates or weights, or chosen so that classes have wanted shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, name_scope

_TOLERANCE = 1e-4


@export("contrib.training.resample_at_rate")
def resample_at_rate(
    inputs: Any, rates: Any, scope: Any = None, seed: int | None = None, back_prop: bool = False
) -> list:
    """Rows of several tensors, each repeated a random number of times, on average as often as its rate says."""
    with name_scope(scope, "resample_at_rate", [*inputs, rates]):
        tensors, rates = [to_tensor(x) for x in inputs], to_tensor(rates, name="rates")
        counts = find("random_poisson")(rates, [], dtypes.int32, seed)
        rows = find("repeat")(find("range")(find("shape")(rates)[0]), counts)
        drawn = [find("gather")(x, rows) for x in tensors]
        return drawn if back_prop else [find("stop_gradient")(x) for x in drawn]


@export("contrib.training.weighted_resample")
def weighted_resample(
    inputs: Any,
    weights: Any,
    overall_rate: float,
    scope: Any = None,
    mean_decay: float = 0.999,
    seed: int | None = None,
) -> tuple[list, Tensor]:
    """Rows drawn as often as their weights say, `overall_rate` on average; with them the rates they were drawn at."""
    with variable_scope(scope, "weighted_resample", [*inputs, weights]):
        weights = to_tensor(weights)
        with control_dependencies([find("assert_non_negative")(weights)]):
            weights = find("identity")(weights)
        mean = _running_mean(find("reduce_mean")(weights), mean_decay, "estimate")
        rates = weights * (overall_rate / mean)
        drawn = resample_at_rate([*inputs, rates], rates, seed=seed)
        return drawn[:-1], drawn[-1]


def _running_mean(value: Tensor, decay: float, name: str) -> Tensor:
    """The mean of all values so far in which older ones count less, updated whenever it is used."""
    kept = find("get_variable")(
        name,
        initializer=find("zeros")([*value.shape.as_list(), 2], value.dtype),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES],
    )
    pair = find("stack")([value, find("ones_like")(value)], -1)
    moved = find("assign")(kept, kept * decay + pair * (1.0 - decay))
    return moved[..., 0] / moved[..., 1]


@export("contrib.training.rejection_sample")
def rejection_sample(
    tensors: Any,
    accept_prob_fn: Callable,
    batch_size: int,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: str | None = None,
) -> list:
    """Batches of those examples that are accepted: each with the probability that a function gives it."""
    with variable_scope(name, "rejection_sample", tensors):
        given = [to_tensor(x) for x in tensors]
        if enqueue_many:
            given = _one_by_one(given, prebatch_threads, prebatch_capacity)
        probability = to_tensor(accept_prob_fn(given))
        probability.shape.assert_has_rank(0)
        if runtime_checks:
            checks = [
                find("assert_less_equal")(probability, find("constant")(1.0, probability.dtype)),
                find("assert_non_negative")(probability),
            ]
            with control_dependencies(checks):
                probability = find("identity")(probability)
        keep = find("random_uniform")([], dtype=probability.dtype) < probability
        return find("train.maybe_batch")(given, keep, batch_size, num_threads=queue_threads)


def _one_by_one(tensors: list, threads: int, capacity: int) -> list:
    """The rows of tensors, one at a time, through a queue."""
    batched = find("train.batch")(tensors, 1, threads, capacity, enqueue_many=True)
    return [find("squeeze")(x, [0]) for x in (batched if isinstance(batched, list) else [batched])]


@export("contrib.training.stratified_sample")
def stratified_sample(
    tensors: Any,
    labels: Any,
    target_probs: Any,
    batch_size: int,
    init_probs: Any = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: str | None = None,
) -> tuple[list, Tensor]:
    """Batches in which each class has its wanted share; the shares in the data are given or learned on the way."""
    with variable_scope(name, "stratified_sample", [*tensors, labels]):
        given, labels = [to_tensor(x) for x in tensors], to_tensor(labels)
        if not enqueue_many:
            given = [find("expand_dims")(x, 0) for x in given]
            labels = find("expand_dims")(labels, 0)
        wanted = _shares(target_probs, "target_probs")
        classes = wanted.shape[0].value
        if init_probs is None:
            seen = find("one_hot")(labels, classes, dtype=wanted.dtype)
            result = _running_mean(find("reduce_mean")(seen, 0), 0.999, "class_shares")
        else:
            result = _shares(init_probs, "init_probs")
            result.shape.assert_is_compatible_with(wanted.shape)
        given, labels = _checked(given, labels, classes)
        *values, label = _one_by_one([*given, labels], threads_per_queue, queue_capacity)
        accepted = find("gather")(_acceptance(result, wanted), label)
        keep = find("random_uniform")([], dtype=accepted.dtype) < accepted
        batch = find("train.maybe_batch")([*values, label], keep, batch_size, num_threads=threads_per_queue)
        return batch[:-1], batch[-1]


def _shares(values: Any, what: str) -> Tensor:
    result = to_tensor(values, dtypes.float32) if not isinstance(values, Tensor) else values
    if result.shape.ndims not in (None, 1) or result.shape.ndims is None or result.shape[0].value is None:
        raise ValueError(f"{what} must be a vector whose length is known, not of shape {result.shape}.")
    known = constant_value(result)
    if known is not None and (np.any(known < 0) or abs(float(np.sum(known)) - 1.0) > _TOLERANCE):
        raise ValueError(f"{what} must be probabilities that add up to one, not {known}.")
    return result


def _checked(tensors: list, labels: Tensor, classes: int) -> tuple[list, Tensor]:
    """The same, once it is sure that there is a label for each row and that all labels are classes."""
    if labels.shape.ndims not in (None, 1):
        raise ValueError(f"labels must be a vector, not of shape {labels.shape}.")
    for x in tensors:
        if x.shape.ndims is not None:
            x.shape[:1].assert_is_compatible_with(labels.shape)
    checks = [
        find("assert_non_negative")(labels),
        find("assert_less")(labels, find("cast")(classes, labels.dtype)),
    ]
    with control_dependencies(checks):
        return [find("identity")(x) for x in tensors], find("identity")(labels)


def _acceptance(found: Tensor, wanted: Tensor) -> Tensor:
    """With which probability each class is accepted, so that the rarest of those wanted is never refused."""
    ratios = find("div_no_nan")(wanted, found)
    return ratios / find("reduce_max")(ratios)
