"""Losses scaled for training on several replicas. A graph of ours is one replica."""

from __future__ import annotations

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.reduce_functions import reduce_sum


@export("nn.compute_average_loss")
def compute_average_loss(
    per_example_loss: TensorLike, sample_weight: TensorLike = None, global_batch_size: TensorLike = None
) -> Tensor:
    """The sum of the examples' losses over the global batch size: by default, how many examples there are."""
    losses = to_tensor(per_example_loss)
    if sample_weight is not None:
        losses = losses * cast(to_tensor(sample_weight), losses.dtype.base_dtype)
    if global_batch_size is None:
        size = shape_of(losses)[0]
    else:
        size = to_tensor(global_batch_size, dtypes.int32)
        if size.shape.rank not in (None, 0):
            raise ValueError(f"global_batch_size must be scalar, got shape {size.shape}.")
    return apply("RealDiv", reduce_sum(losses), cast(size, losses.dtype.base_dtype))


@export("nn.scale_regularization_loss")
def scale_regularization_loss(regularization_loss: TensorLike) -> Tensor:
    """The sum of regularization losses over the number of replicas."""
    return reduce_sum(to_tensor(regularization_loss))
