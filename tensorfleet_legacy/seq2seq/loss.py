"""`tf.contrib.seq2seq`: the loss of sequences in one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import export, find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.argument_order import loss_of

_RANKS = (
    (3, "Logits must be a [batch_size x sequence_length x logits] tensor"),
    (2, "Targets must be a [batch_size x sequence_length] tensor"),
    (2, "Weights must be a [batch_size x sequence_length] tensor"),
)


def _reduce(costs: Tensor, weights: Tensor, axis: int | None, over_nonzero: bool) -> Tensor:
    """The sum of costs along `axis`, over that of the weights or the number of those that are not zero."""
    total = find("reduce_sum")(weights, axis=axis)
    if over_nonzero:
        total = find("cast")(find("count_nonzero")(weights, axis=axis), costs.dtype)
    return find("div")(find("reduce_sum")(costs, axis=axis), total + 1e-12)


@export("contrib.seq2seq.sequence_loss")
def sequence_loss(
    logits: Tensor,
    targets: Tensor,
    weights: Tensor,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross entropy of logits (batch, time, classes), reduced along time, batch, both or neither."""
    values: Any = (logits, targets, weights)
    for value, (rank, text) in zip(values, _RANKS, strict=True):
        if len(value.shape) != rank:
            raise ValueError(text)
    for average, add, what in (
        (average_across_timesteps, sum_over_timesteps, "timesteps"),
        (average_across_batch, sum_over_batch, "batch"),
    ):
        if average and add:
            text = f"average_across_{what} and sum_over_{what} cannot be set to True at same time."
            raise ValueError(text)
    with name_scope(name, "sequence_loss", values):
        flat = find("reshape")(logits, [-1, find("shape")(logits)[2]])
        labels = find("reshape")(targets, [-1])
        loss = softmax_loss_function or find("nn.sparse_softmax_cross_entropy_with_logits")
        costs = loss_of(loss, labels, flat) * find("reshape")(weights, [-1])
        costs = find("reshape")(costs, find("shape")(logits)[0:2])
        if average_across_timesteps and average_across_batch:
            return _reduce(costs, weights, None, False)
        if sum_over_timesteps and sum_over_batch:
            return _reduce(costs, weights, None, True)
        if average_across_timesteps or sum_over_timesteps:
            costs = _reduce(costs, weights, 1, sum_over_timesteps)
        elif average_across_batch or sum_over_batch:
            costs = _reduce(costs, weights, 0, sum_over_batch)
        return costs
