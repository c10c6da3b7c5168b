"""Stochastic dual coordinate ascent for linear models: one pass over a batch, shrinking, and fingerprints of examples."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_op
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.fingerprint128 import fingerprint128
from tensorfleet.kernels.sdca_losses import LOSSES
from tensorfleet.ops.common import tensor_list
from tensorfleet.ops.samples import case

_INPUTS = (
    "sparse_example_indices: num_sparse_features * int64, sparse_feature_indices: num_sparse_features * int64, "
    "sparse_feature_values: num_sparse_features_with_values * float, dense_features: num_dense_features * float, "
    "example_weights: float, example_labels: float, sparse_indices: num_sparse_features * int64, "
    "sparse_weights: num_sparse_features * float, dense_weights: num_dense_features * float, "
    "example_state_data: float -> out_example_state_data: float, "
    "out_delta_sparse_weights: num_sparse_features * float, out_delta_dense_weights: num_dense_features * float"
)
_ATTRS = (
    "loss_type: string(logistic_loss | squared_loss | hinge_loss | smooth_hinge_loss | poisson_loss); "
    "{adaptive}: bool = false; num_sparse_features: int >= 0; num_sparse_features_with_values: int >= 0; "
    "num_dense_features: int >= 0; l1: float; l2: float; num_loss_partitions: int >= 1; num_inner_iterations: int >= 1"
)
_WEIGHTS, _DENSE_WEIGHTS = 7, 8  # positions among the inputs
# A picked example is picked again with a tenth of its probability.
_DECAY = 0.1


def _shapes(op: Operation) -> list[TensorShape]:
    state = op._inputs[-1].shape.as_list() if op._inputs[-1].shape.rank else [None]
    changed = [*tensor_list(op, _WEIGHTS), *tensor_list(op, _DENSE_WEIGHTS)]
    return [TensorShape._of((state[0], 4)), *(t.shape for t in changed)]


class _Column:
    """Features of one column: for each example the positions of its weights and its values; and the weights."""

    def __init__(self, rows: list[tuple[Array, Array]], weights: Array) -> None:
        self.rows = rows
        self.before = weights.astype(np.float64).ravel()
        self.change = np.zeros_like(self.before)


def _sparse_column(
    count: int, examples: Array, features: Array, values: Array | None, ids: Array, weights: Array
) -> _Column:
    if len(examples) != len(features):
        raise errors.invalid(f"Expected {len(examples)} feature indices, got {len(features)}.")
    if len(ids) != weights.size:
        raise errors.invalid(f"Expected {len(ids)} sparse weights, got {weights.size}.")
    order = np.argsort(ids, kind="stable")
    places = np.searchsorted(ids, features, sorter=order) if len(ids) else np.zeros(len(features), np.int64)
    if len(features) and (places.max(initial=0) >= len(ids) or (ids[order][places] != features).any()):
        raise errors.invalid("Found sparse feature indices out of valid range: not among `sparse_indices`.")
    places = order[places] if len(features) else places
    numbers = np.ones(len(features)) if values is None else values.astype(np.float64)
    if len(examples) and (examples.min() < 0 or examples.max() >= count):
        raise errors.invalid(f"Error: example_indices should be in [0, {count}).")
    rows = []
    for i in range(count):
        mine = np.flatnonzero(examples == i)
        if len(np.unique(places[mine])) != len(mine):
            raise errors.invalid("Duplicate index in sparse vector.")
        rows.append((places[mine], numbers[mine]))
    return _Column(rows, weights)


def _dense_column(count: int, features: Array, weights: Array) -> _Column:
    values = features.reshape(count, -1).astype(np.float64)
    if values.shape[1] != weights.size:
        raise errors.invalid(
            f"Expected {values.shape[1]} weights in the second dimension, got {weights.size}."
        )
    every = np.arange(values.shape[1])
    return _Column([(every, row) for row in values], weights)


class _Pass:
    """A model, a batch of its examples, and how strongly its weights are held back."""

    def __init__(self, columns: list[_Column], l1: float, l2: float, partitions: int) -> None:
        self.columns, self.l2, self.partitions = columns, l2, partitions
        self.shrinkage = l1 / l2

    def shrunk(self, weights: Array) -> Array:
        result: Array = np.sign(weights) * np.maximum(np.abs(weights) - self.shrinkage, 0)
        return result

    def scores(self, example: int) -> tuple[float, float, float]:
        """What the model gives for an example now and before the pass, and its squared length over `l2`."""
        now = before = norm = 0.0
        for column in self.columns:
            places, values = column.rows[example]
            old, change = column.before[places], column.change[places]
            now += float(values @ self.shrunk(old + change * self.partitions))
            before += float(values @ self.shrunk(old))
            norm += float(values @ values)
        return now, before, norm / self.l2

    def move(self, example: int, by: float) -> None:
        for column in self.columns:
            places, values = column.rows[example]
            column.change[places] += values * by

    def order(self, state: Array, labels: Array, weights: Array, loss: Any, adaptive: bool) -> list[int]:
        """Which example comes when: any order, or rather those first that are farthest from their best step."""
        order = list(range(len(state)))
        if not adaptive:
            random.shuffle(order)
            return order
        chances = []
        for i in order:
            now, _, norm = self.scores(i)
            off = abs(state[i, 0] + loss.slope(now, loss.label(float(labels[i])), 1.0))
            chances.append(weights[i] * (norm * self.l2 + self.l2 * loss.smoothness) ** 0.5 * off)
        if not sum(chances) > 0:
            return order
        picked: list[int] = []
        for candidate in random.choices(order, chances, k=2 * len(order)):
            if len(picked) < len(order) and random.random() <= _DECAY ** picked.count(candidate):
                picked.append(candidate)
        unseen = sorted(set(order) - set(picked), key=lambda i: -chances[i])
        return (picked + unseen)[: len(order)]


def _ascend(
    columns: list[_Column], weights: Array, labels: Array, state: Array, attrs: dict[str, Any]
) -> Array:
    """The state of the examples after their steps, which change the weights."""
    loss, l2 = LOSSES[attrs["loss_type"]], attrs["l2"]
    run = _Pass(columns, attrs["l1"], l2, attrs["num_loss_partitions"])
    state = state.astype(np.float64)
    # TensorFlow goes through the examples once, whatever `num_inner_iterations` says.
    for i in run.order(state, labels, weights, loss, attrs["adaptive"]):
        now, before, norm = run.scores(i)
        label, weight, dual = loss.label(float(labels[i])), float(weights[i]), state[i, 0]
        new = loss.dual(label, weight, dual, now, norm * run.partitions)
        run.move(i, (new - dual) * weight / l2)
        primal = loss.primal_loss(before, label, weight)
        state[i] = new, primal, loss.dual_loss(dual, label, weight), weight
    return state.astype(np.float32)


def _optimize(op: Operation, inputs: tuple[Any, ...], adaptive: bool) -> tuple[Array, ...]:
    examples, features, values, dense, weights, labels, ids, sparse_weights, dense_weights, state = inputs
    count = len(weights)
    if labels.shape != weights.shape:
        raise errors.invalid(f"Expected {count} example labels, got {labels.size}.")
    if state.shape != (count, 4):
        raise errors.invalid(f"example_state_data should have shape [{count},4], got {list(state.shape)}.")
    given = [*values, *[None] * (len(examples) - len(values))]
    rows = zip(examples, features, given, ids, sparse_weights, strict=True)
    columns = [_sparse_column(count, *row) for row in rows]
    columns += [_dense_column(count, f, w) for f, w in zip(dense, dense_weights, strict=True)]
    updated = _ascend(columns, weights, labels, state, {**op._attrs, "adaptive": adaptive})
    shapes = [w.shape for w in (*sparse_weights, *dense_weights)]
    changes = [c.change.astype(np.float32).reshape(s) for c, s in zip(columns, shapes, strict=True)]
    return (updated, *changes)


_CALL = case(
    [np.array([0, 1])],
    [np.array([0, 3])],
    [np.array([1.0, 2.0], np.float32)],
    [np.array([[1.0, 0.0], [0.0, -1.0]], np.float32)],
    np.array([1.0, 2.0], np.float32),
    np.array([0.0, 1.0], np.float32),
    [np.array([3, 0])],
    [np.array([0.5, -0.25], np.float32)],
    [np.array([0.1, 0.2], np.float32)],
    np.zeros((2, 4), np.float32),
    loss_type=b"logistic_loss",
    l1=0.1,
    l2=1.0,
    num_loss_partitions=1,
    num_inner_iterations=1,
)


@op(
    "SdcaOptimizer",
    _INPUTS,
    _ATTRS.format(adaptive="adaptative"),
    shape=_shapes,
    host=True,
    examples=[_CALL],
)
def _sdca_optimizer(ctx: HostContext, *inputs: Any, adaptative: bool) -> tuple[Array, ...]:
    return _optimize(ctx.op, inputs, adaptative)


@op(
    "SdcaOptimizerV2",
    _INPUTS,
    _ATTRS.format(adaptive="adaptive"),
    shape=_shapes,
    host=True,
    examples=[_CALL],
)
def _sdca_optimizer_v2(ctx: HostContext, *inputs: Any, adaptive: bool) -> tuple[Array, ...]:
    return _optimize(ctx.op, inputs, adaptive)


def _two_for_each(op: Operation) -> TensorShape:
    shape = op._inputs[0].shape
    return TensorShape._of((shape.as_list()[0] if shape.rank else None, 2))


@op(
    "SdcaFprint",
    "input: string[1] -> output: int64",
    shape=_two_for_each,
    host=True,
    examples=[case(np.array([b"", b"abc", b"a longer name of an example"], object))],
)
def _sdca_fprint(ctx: HostContext, given: Array) -> Array:
    fingerprints = [fingerprint128(text) for text in given.tolist()]
    return np.array(fingerprints, np.uint64).reshape(-1, 2).view(np.int64)


@op(
    "SdcaShrinkL1",
    "weights: num_features * Ref(float)",
    "num_features: int >= 0; l1: float; l2: float",
    updates=["weights"],
)
def _sdca_shrink(xp: ArrayModule, weights: list[Array], *, l1: float, l2: float) -> Any:
    limit = np.float32(l1 / l2)
    return tuple(xp.sign(w) * xp.maximum(xp.abs(w) - limit, np.float32(0)) for w in weights)


not_differentiable("SdcaOptimizer", "SdcaOptimizerV2", "SdcaFprint", "SdcaShrinkL1")


@export("train.sdca_optimizer")
def sdca_optimizer(
    sparse_example_indices: TensorLike,
    sparse_feature_indices: TensorLike,
    sparse_feature_values: TensorLike,
    dense_features: TensorLike,
    example_weights: TensorLike,
    example_labels: TensorLike,
    sparse_indices: TensorLike,
    sparse_weights: TensorLike,
    dense_weights: TensorLike,
    example_state_data: TensorLike,
    loss_type: str,
    l1: float,
    l2: float,
    num_loss_partitions: int,
    num_inner_iterations: int,
    adaptative: bool = True,
    name: str | None = None,
) -> Any:
    """The state of examples after a step for each, and by how much they change the weights of a linear model."""
    lists = (sparse_example_indices, sparse_feature_indices, sparse_feature_values, dense_features)
    weights = (sparse_indices, sparse_weights, dense_weights)
    return apply_any(
        "SdcaOptimizer",
        *lists,
        example_weights,
        example_labels,
        *weights,
        example_state_data,
        loss_type=loss_type,
        l1=l1,
        l2=l2,
        num_loss_partitions=num_loss_partitions,
        num_inner_iterations=num_inner_iterations,
        adaptative=adaptative,
        name=name,
    )


@export("train.sdca_fprint")
def sdca_fprint(input: TensorLike, name: str | None = None) -> Tensor:
    """Two numbers for each name of an example, which tell it apart from all others."""
    return apply("SdcaFprint", input, name=name)


@export("train.sdca_shrink_l1")
def sdca_shrink_l1(weights: Iterable[TensorLike], l1: float, l2: float, name: str | None = None) -> Operation:
    """Moves weights of variables towards zero by `l1 / l2`, and leaves those there that come to it."""
    return apply_op("SdcaShrinkL1", list(weights), l1=l1, l2=l2, name=name)
