"""`tf.contrib.losses.metric_learning`: losses that bring examples of one class near each other."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import export, find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor

_HERE = "contrib.losses.metric_learning"


@export(f"{_HERE}.metric_loss_ops.pairwise_distance")
def pairwise_distance(feature: Any, squared: bool = False) -> Tensor:
    """The distances between all rows, [rows, rows]."""
    total, square = find("reduce_sum"), find("square")
    lengths = total(square(feature), 1, keepdims=True)
    products = find("matmul")(feature, feature, transpose_b=True)
    result = find("maximum")(lengths - 2.0 * products + find("transpose")(lengths), 0.0)
    apart = 1.0 - find("eye")(find("shape")(feature)[0])
    if squared:
        return result * apart
    # The slope of a root at zero is beyond all numbers: there it is taken a little beside.
    same = find("cast")(result <= 0.0, result.dtype)
    return find("sqrt")(result + same * 1e-16) * (1.0 - same) * apart


def _classes(labels: Any) -> tuple[Tensor, Tensor]:
    """Two masks: pairs of one class without each example's pair with itself, and pairs of two classes."""
    column = find("reshape")(labels, [-1, 1])
    same = find("cast")(find("equal")(column, find("transpose")(column)), "float32")
    return same - find("eye")(find("shape")(column)[0]), 1.0 - same


@export(f"{_HERE}.contrastive_loss")
def contrastive_loss(
    labels: Any, embeddings_anchor: Any, embeddings_positive: Any, margin: float = 1.0
) -> Tensor:
    """Squares of the distances of pairs of one class (label 1), and of what others are too near."""
    square = find("square")
    distances = find("sqrt")(find("reduce_sum")(square(embeddings_anchor - embeddings_positive), 1))
    together = find("cast")(labels, distances.dtype)
    near = square(find("maximum")(margin - distances, 0.0))
    return find("reduce_mean")(
        together * square(distances) + (1.0 - together) * near, name="contrastive_loss"
    )


@export(f"{_HERE}.triplet_semihard_loss")
def triplet_semihard_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """How much nearer an example of one's own class must be than the nearest other one that is further away.

    Where no other one is further away, the furthest counts.
    """
    distances = pairwise_distance(embeddings, squared=True)
    same, other = _classes(labels)
    # [anchor, positive, negative]
    further = (other[:, None, :] > 0) & (distances[:, None, :] > distances[:, :, None])
    huge = find("reduce_max")(distances) + 1.0
    spread = find("zeros_like")(distances)[:, :, None] + distances[:, None, :]
    nearest = find("reduce_min")(find("where")(further, spread, find("ones_like")(spread) * huge), 2)
    furthest = find("reduce_max")(distances * other, 1, keepdims=True) + find("zeros_like")(distances)
    chosen = find("where")(find("reduce_any")(further, 2), nearest, furthest)
    loss = find("maximum")((margin + distances - chosen) * same, 0.0)
    return find("truediv")(find("reduce_sum")(loss), find("reduce_sum")(same), name="triplet_semihard_loss")


@export(f"{_HERE}.npairs_loss")
def npairs_loss(
    labels: Any,
    embeddings_anchor: Any,
    embeddings_positive: Any,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Tensor:
    """The cross entropy of who belongs to whom, and the lengths of the embeddings."""
    column = find("reshape")(labels, [-1, 1])
    same = find("cast")(find("equal")(column, find("transpose")(column)), "float32")
    return _pairs(same, embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


@export(f"{_HERE}.npairs_loss_multilabel")
def npairs_loss_multilabel(
    sparse_labels: list,
    embeddings_anchor: Any,
    embeddings_positive: Any,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Tensor:
    """`npairs_loss` for examples with several classes each: a list of sparse vectors of ones.

    The more classes two examples share, the more they belong together.
    """
    if not all(isinstance(each, SparseTensor) for each in sparse_labels):
        raise TypeError(f"sparse_labels must be a list of SparseTensors, but got {sparse_labels}")
    rows = find("stack")(
        [find("sparse_tensor_to_dense")(each, validate_indices=False) for each in sparse_labels]
    )
    shared = find("minimum")(rows[:, None, :], rows[None, :, :])
    same = find("cast")(find("reduce_sum")(shared, 2), "float32")
    return _pairs(same, embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def _pairs(same: Tensor, anchors: Any, positives: Any, reg_lambda: float, print_losses: bool) -> Tensor:
    """The loss of pairs that belong together as much as `same` says."""
    mean, total, square = find("reduce_mean"), find("reduce_sum"), find("square")
    lengths = mean(total(square(anchors), 1)) + mean(total(square(positives), 1))
    similar = find("matmul")(anchors, positives, transpose_b=True)
    target = find("cast")(same, similar.dtype)
    target = target / total(target, 1, keepdims=True)
    entropy = mean(find("nn.softmax_cross_entropy_with_logits_v2")(labels=target, logits=similar))
    size = 0.25 * reg_lambda * lengths
    if print_losses:
        entropy = find("Print")(entropy, ["cross entropy:", entropy, "l2loss:", size])
    return size + entropy


@export(f"{_HERE}.lifted_struct_loss")
def lifted_struct_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """Each pair of one class against all that are too near to either of the two (Song et al. 2016)."""
    distances, exp = pairwise_distance(embeddings), find("exp")
    same, other = _classes(labels)
    most = find("reduce_max")((margin - distances) * other, 1, keepdims=True)
    # For numbers that are not too large, the largest exponent of either example is taken out.
    above = find("maximum")(most, find("transpose")(most))
    each = exp(margin - distances[:, None, :] - above[:, :, None]) * other[:, None, :]
    sums = find("reduce_sum")(each, 2)
    loss = find("log")(sums + find("transpose")(sums)) + above + distances
    chosen = find("square")(find("maximum")(loss * same, 0.0))
    pairs = find("reduce_sum")(same) / 2.0
    return find("truediv")(0.25 * find("reduce_sum")(chosen), pairs, name="liftedstruct_loss")
