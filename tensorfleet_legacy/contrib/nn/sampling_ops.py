"""`tf.contrib.nn`: losses over samples of the classes, a scaled softplus, cross entropies in their old order."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.nn.sampled import compute_sampled_logits
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope

conv1d_transpose = find("nn.conv1d_transpose")


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Tensor:
    """The n-th smallest (with `reverse`, largest) of each row, counted from 0."""
    return apply("NthElement", input, n, reverse=reverse, name=name)


def scaled_softplus(x: Any, alpha: Any, clip: Any = None, name: str | None = None) -> Tensor:
    """`alpha * ln(1 + exp(x / alpha))`, at most `clip`: the smaller `alpha`, the more like `relu`."""
    with name_scope(name, "scaled_softplus", [x, alpha, clip]):
        x = to_tensor(x, name="x")
        alpha = to_tensor(alpha, x.dtype, name="alpha")
        y = alpha * find("nn.softplus")(x / alpha)
        return y if clip is None else find("minimum")(y, to_tensor(clip, x.dtype, name="clip"))


def sampled_sparse_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_sparse_softmax_loss",
) -> Tensor:
    """`tf.nn.sampled_softmax_loss` for exactly one true class in each row."""
    logits, _ = compute_sampled_logits(**locals())
    first = find("zeros")([find("shape")(logits)[0]], dtypes.int64)
    return find("nn.sparse_softmax_cross_entropy_with_logits")(labels=first, logits=logits)


def rank_sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_resampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    resampling_temperature: Any,
    remove_accidental_hits: bool,
    partition_strategy: str,
    name: str | None = None,
) -> Tensor:
    """`tf.nn.sampled_softmax_loss` over the most likely `num_resampled` of the sampled classes (TAPAS)."""
    if num_sampled > num_classes:
        raise ValueError(f"num_sampled ({num_sampled}) cannot be greater than num_classes ({num_classes})")
    if num_sampled <= num_resampled:
        raise ValueError(f"num_resampled ({num_resampled}) must be less than num_sampled ({num_sampled})")
    if partition_strategy not in ("div", "mod"):
        raise ValueError(f"unsupported partition_strategy ({partition_strategy})")
    with name_scope(name, "rank_sampled_softmax_loss", [biases, labels, inputs]) as scope:
        if not sampled_values:
            sampled_values = find("nn.learned_unigram_candidate_sampler")(
                labels, num_true, num_sampled, True, num_classes
            )
        classes, true_count, sampled_count = (find("stop_gradient")(s) for s in sampled_values)
        lookup = find("nn.embedding_lookup")
        rows = lookup(weights, classes, partition_strategy)
        offsets = find("reshape")(lookup(biases, classes, partition_strategy), [-1])
        products = find("matmul")(rows, inputs / resampling_temperature, transpose_b=True)
        likely = find("reduce_logsumexp")(products, 1) + offsets / resampling_temperature
        _, best = find("nn.top_k")(likely, num_resampled, sorted=False)
        kept = find("gather")(classes, best), true_count, find("gather")(sampled_count, best)
        return find("nn.sampled_softmax_loss")(
            weights,
            biases,
            labels,
            inputs,
            num_resampled,
            num_classes,
            num_true,
            kept,
            remove_accidental_hits,
            partition_strategy,
            name=scope,
        )


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: str | None = None
) -> Tensor:
    """`tf.nn.softmax_cross_entropy_with_logits` in the order of before 1.0."""
    return find("nn.softmax_cross_entropy_with_logits")(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Tensor:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` in the order of before 1.0."""
    return find("nn.sparse_softmax_cross_entropy_with_logits")(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(
    logits: Any, targets: Any, name: str | None = None
) -> Tensor:
    """`tf.nn.sigmoid_cross_entropy_with_logits` in the order of before 1.0."""
    return find("nn.sigmoid_cross_entropy_with_logits")(labels=targets, logits=logits, name=name)
