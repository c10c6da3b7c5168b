"""Functions of neural networks with the argument lists of TensorFlow 2, as code inside TensorFlow calls them."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import export, find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Tensor


@export("python.ops.nn_impl.nce_loss_v2")
def nce_loss_v2(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str = "nce_loss",
) -> Tensor:
    """`tf.nn.nce_loss` of tables whose parts hold consecutive rows."""
    given = (weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values)
    return find("nn.nce_loss")(*given, remove_accidental_hits, "div", name)


@export("python.ops.nn_impl.sampled_softmax_loss_v2")
def sampled_softmax_loss_v2(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str = "sampled_softmax_loss",
) -> Tensor:
    """`tf.nn.sampled_softmax_loss` of tables whose parts hold consecutive rows."""
    given = (weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values)
    return find("nn.sampled_softmax_loss")(*given, remove_accidental_hits, "div", name, seed)


@export("python.ops.nn_ops.dropout_v2")
def dropout_v2(
    x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """`tf.nn.dropout` by the share that is dropped."""
    return find("nn.dropout")(x, None, noise_shape, seed, name, rate)


@export("python.ops.nn_ops.Convolution")
class Convolution:
    """A convolution of inputs and filters of known shapes, as layers of libraries keep it: `tf.nn.convolution`."""

    def __init__(
        self,
        input_shape: Any,
        filter_shape: Any,
        padding: Any,
        strides: Any = None,
        dilation_rate: Any = None,
        name: str | None = None,
        data_format: str | None = None,
    ) -> None:
        inner, outer = TensorShape(filter_shape), TensorShape(input_shape)
        rank = inner.rank if inner.rank is not None else outer.rank
        if rank is None:
            raise ValueError("rank of input or filter must be known")
        outer, inner = _of_rank(outer, rank, "input"), _of_rank(inner, rank, "filter")
        place = 1 if (data_format or "").startswith("NC") else rank - 1
        channels, wanted = outer.as_list()[place], inner.as_list()[rank - 2]
        if None not in (channels, wanted) and channels != wanted:
            raise ValueError(
                f"number of input channels does not match corresponding dimension of filter, {channels} != {wanted}"
            )
        self.input_shape, self.filter_shape = outer, inner
        self.padding, self.strides, self.dilation_rate = padding, strides, dilation_rate
        self.name, self.data_format = name, data_format

    def __call__(self, inp: Any, filter: Any) -> Tensor:
        given = (self.padding, self.strides, self.dilation_rate, self.name, self.data_format)
        return find("nn.convolution")(inp, filter, *given)


def _of_rank(shape: TensorShape, rank: int, of: str) -> TensorShape:
    try:
        return shape.with_rank(rank)
    except ValueError:
        raise ValueError(f"{of} tensor must have rank {rank}") from None
