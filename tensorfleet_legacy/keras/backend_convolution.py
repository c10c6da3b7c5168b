"""Functions of `tf.keras.backend`: convolutions, sequences of labels, paddings, repetitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.api.train.moving_averages import assign_moving_average
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.layers.convolutional_padding import _repeated


def backend() -> str:
    """The name of the backend."""
    return "tensorflow"


def _first(data_format: str | None) -> bool:
    layout = data_format or state.image_data_format()
    if layout not in ("channels_first", "channels_last"):
        raise ValueError(f"Unknown data_format: {layout}")
    return layout == "channels_first"


def _moved(x: Tensor, first: bool) -> Tensor:
    """Channels behind all else."""
    rank = len(x.shape.as_list())
    return find("transpose")(x, [0, *range(2, rank), 1]) if first else x


def _back(x: Tensor, first: bool) -> Tensor:
    rank = len(x.shape.as_list())
    return find("transpose")(x, [0, rank - 1, *range(1, rank - 1)]) if first else x


def _padding(padding: str) -> str:
    if padding not in ("same", "valid"):
        raise ValueError(f"Invalid padding: {padding}")
    return padding.upper()


def _many(value: Any, rank: int) -> tuple:
    return (value,) * rank if isinstance(value, int) else tuple(value)


def _convolved(
    x: Any, kernel: Any, strides: Any, padding: str, data_format: Any, rate: Any, rank: int
) -> Tensor:
    first = _first(data_format)
    output = find("nn.convolution")(
        _moved(to_tensor(x), first), kernel, _padding(padding), _many(strides, rank), _many(rate, rank)
    )
    return _back(output, first)


def conv1d(
    x: Any,
    kernel: Any,
    strides: int = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int = 1,
) -> Tensor:
    """A convolution along sequences; "causal" pads before them."""
    if padding == "causal":
        before = dilation_rate * (to_tensor(kernel).shape.as_list()[0] - 1)
        x, padding = temporal_padding(x, (before, 0)), "valid"
    return _convolved(x, kernel, strides, padding, data_format, dilation_rate, 1)


def conv2d(
    x: Any,
    kernel: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Tensor:
    """A convolution over images."""
    return _convolved(x, kernel, strides, padding, data_format, dilation_rate, 2)


def conv3d(
    x: Any,
    kernel: Any,
    strides: Any = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1, 1),
) -> Tensor:
    """A convolution over volumes."""
    return _convolved(x, kernel, strides, padding, data_format, dilation_rate, 3)


def conv2d_transpose(
    x: Any,
    kernel: Any,
    output_shape: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Tensor:
    """Images whose convolution would give `x`."""
    if _many(dilation_rate, 2) != (1, 1):
        raise ValueError("conv2d_transpose with a dilation_rate is not supported: give (1, 1).")
    first = _first(data_format)
    moved = _moved(to_tensor(x), first)
    sizes = list(output_shape)
    sizes = [sizes[0], *sizes[2:], sizes[1]] if first else sizes
    sizes = [find("shape")(moved)[0] if size is None else size for size in sizes]
    output = find("nn.conv2d_transpose")(
        moved, kernel, find("stack")(sizes), [1, *_many(strides, 2), 1], _padding(padding)
    )
    return _back(output, first)


def depthwise_conv2d(
    x: Any,
    depthwise_kernel: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Tensor:
    """A convolution of each channel alone."""
    first = _first(data_format)
    steps, rate = (1, *_many(strides, 2), 1), _many(dilation_rate, 2)
    moved = _moved(to_tensor(x), first)
    return _back(
        find("nn.depthwise_conv2d")(moved, depthwise_kernel, steps, _padding(padding), rate=rate), first
    )


def separable_conv2d(
    x: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Tensor:
    """A convolution of each channel alone, then one that mixes them."""
    first = _first(data_format)
    steps, rate = (1, *_many(strides, 2), 1), _many(dilation_rate, 2)
    moved = _moved(to_tensor(x), first)
    output = find("nn.separable_conv2d")(
        moved, depthwise_kernel, pointwise_kernel, steps, _padding(padding), rate=rate
    )
    return _back(output, first)


def _pooled(x: Any, size: Any, strides: Any, padding: str, data_format: Any, mode: str) -> Tensor:
    if mode not in ("max", "avg"):
        raise ValueError(f"Invalid pooling mode: {mode}")
    first = _first(data_format)
    moved = _moved(to_tensor(x), first)
    kind = {"max": "MAX", "avg": "AVG"}[mode]
    return _back(find("nn.pool")(moved, tuple(size), kind, _padding(padding), strides=tuple(strides)), first)


def pool2d(
    x: Any,
    pool_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> Tensor:
    """The largest or the mean of each window of images."""
    return _pooled(x, pool_size, strides, padding, data_format, pool_mode)


def pool3d(
    x: Any,
    pool_size: Any,
    strides: Any = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> Tensor:
    """The largest or the mean of each window of volumes."""
    return _pooled(x, pool_size, strides, padding, data_format, pool_mode)


def batch_normalization(
    x: Any, mean: Any, var: Any, beta: Any, gamma: Any, axis: int = -1, epsilon: float = 1e-3
) -> Tensor:
    """`x` with a mean and a variance taken away, times `gamma`, plus `beta`."""
    x = to_tensor(x)
    shape = [1] * len(x.shape.as_list())
    shape[axis] = -1
    parts = [None if p is None else find("reshape")(p, shape) for p in (mean, var, beta, gamma)]
    return find("nn.batch_normalization")(x, *parts, epsilon)


def normalize_batch_in_training(
    x: Any, gamma: Any, beta: Any, reduction_axes: Any, epsilon: float = 1e-3
) -> tuple:
    """(`x` normalized over some axes, its mean, its variance)."""
    x = to_tensor(x)
    mean, variance = find("nn.moments")(x, list(reduction_axes))
    shape = [1 if i in list(reduction_axes) else d for i, d in enumerate(x.shape.as_list())]
    parts = [
        None if p is None else find("reshape")(p, [-1 if d is None else d for d in shape])
        for p in (mean, variance, beta, gamma)
    ]
    return find("nn.batch_normalization")(x, *parts, epsilon), mean, variance


def moving_average_update(x: Any, value: Any, momentum: float) -> Any:
    """Moves a variable towards a value."""
    return assign_moving_average(x, value, momentum, zero_debias=True)


# -- sequences of labels ---------------------------------------------------------------------------------


def ctc_label_dense_to_sparse(labels: Any, label_lengths: Any) -> Any:
    """Rows of labels, each as long as its length says, as a sparse tensor."""
    labels = to_tensor(labels)
    shape = find("shape")(labels, out_type="int64")
    places = find("where")(find("sequence_mask")(label_lengths, shape[1]))
    return find("SparseTensor")(places, find("gather_nd")(labels, places), shape)


def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> Tensor:
    """How unlikely the labels are, given the probabilities of each step: [batch, 1]."""
    cast, squeeze = find("cast"), find("squeeze")
    labels = ctc_label_dense_to_sparse(y_true, cast(squeeze(label_length, -1), np.int32))
    sparse = find("SparseTensor")(labels.indices, cast(labels.values, np.int32), labels.dense_shape)
    steps = find("log")(find("transpose")(y_pred, [1, 0, 2]) + state.epsilon())
    lengths = cast(squeeze(input_length, -1), np.int32)
    return find("expand_dims")(find("nn.ctc_loss")(sparse, steps, lengths), 1)


def ctc_decode(
    y_pred: Any, input_length: Any, greedy: bool = True, beam_width: int = 100, top_paths: int = 1
) -> tuple:
    """(the likeliest labels, a tensor for each path with -1 behind the ends; the logarithms of their probabilities)."""
    steps = find("log")(find("transpose")(y_pred, [1, 0, 2]) + state.epsilon())
    lengths = find("cast")(input_length, np.int32)
    if greedy:
        decoded, chances = find("nn.ctc_greedy_decoder")(steps, lengths)
    else:
        decoded, chances = find("nn.ctc_beam_search_decoder")(
            steps, lengths, beam_width=beam_width, top_paths=top_paths, merge_repeated=False
        )
    return [find("sparse.to_dense")(path, default_value=-1) for path in decoded], chances


# -- shapes ----------------------------------------------------------------------------------------------


def temporal_padding(x: Any, padding: Any = (1, 1)) -> Tensor:
    """Zeros before and behind sequences."""
    return find("pad")(x, [[0, 0], list(padding), [0, 0]])


def spatial_2d_padding(x: Any, padding: Any = ((1, 1), (1, 1)), data_format: str | None = None) -> Tensor:
    """Zeros around images."""
    sides = [list(side) for side in padding]
    return find("pad")(x, [[0, 0], [0, 0], *sides] if _first(data_format) else [[0, 0], *sides, [0, 0]])


def spatial_3d_padding(
    x: Any, padding: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None
) -> Tensor:
    """Zeros around volumes."""
    return spatial_2d_padding(x, padding, data_format)


def repeat(x: Any, n: int) -> Tensor:
    """Each vector `n` times, as a sequence."""
    return find("tile")(find("expand_dims")(x, 1), [1, n, 1])


def repeat_elements(x: Any, rep: int, axis: int) -> Tensor:
    """Each element along an axis `rep` times in a row."""
    x = to_tensor(x)
    return _repeated(x, axis % len(x.shape.as_list()), rep)


def resize_images(
    x: Any, height_factor: int, width_factor: int, data_format: str, interpolation: str = "nearest"
) -> Tensor:
    """Images a whole number of times as large."""
    from tensorfleet_legacy.keras.layers.convolutional import UpSampling2D

    return UpSampling2D((height_factor, width_factor), data_format, interpolation)(to_tensor(x))


def resize_volumes(
    x: Any, depth_factor: int, height_factor: int, width_factor: int, data_format: str
) -> Tensor:
    """Volumes a whole number of times as large."""
    x, start = to_tensor(x), 2 if _first(data_format) else 1
    for axis, times in enumerate((depth_factor, height_factor, width_factor), start):
        x = _repeated(x, axis, times)
    return x


# -- variables, randomness, functions --------------------------------------------------------------------


def eye(size: int, dtype: Any = None, name: str | None = None) -> Any:
    """A variable that begins with the identity matrix."""
    return state.variable(np.eye(size), dtype or state.floatx(), name)


def random_uniform_variable(
    shape: Any, low: float, high: float, dtype: Any = None, name: str | None = None, seed: int | None = None
) -> Any:
    """A variable that begins with random numbers between two."""
    kind = dtype or state.floatx()
    return state.variable(find("random_uniform")(shape, low, high, dtype=kind, seed=seed), kind, name)


def random_normal_variable(
    shape: Any, mean: float, scale: float, dtype: Any = None, name: str | None = None, seed: int | None = None
) -> Any:
    """A variable that begins with normal random numbers."""
    kind = dtype or state.floatx()
    return state.variable(find("random_normal")(shape, mean, scale, dtype=kind, seed=seed), kind, name)


def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: int | None = None) -> Tensor:
    """Ones with a probability, else zeros."""
    kind = dtype or state.floatx()
    return find("cast")(find("random_uniform")(shape, seed=seed) <= p, kind)


def foldl(fn: Callable, elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """The result of a function of the elements one after the other, from the first."""
    return find("foldl")(fn, elems, initializer=initializer, name=name)


def foldr(fn: Callable, elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """The same from the last."""
    return find("foldr")(fn, elems, initializer=initializer, name=name)


def in_top_k(predictions: Any, targets: Any, k: int) -> Tensor:
    """Whether each target is among the `k` likeliest."""
    return find("nn.in_top_k")(predictions, targets, k)


def is_sparse(tensor: Any) -> bool:
    """Whether a tensor is sparse."""
    return isinstance(tensor, find("SparseTensor"))


def to_dense(tensor: Any) -> Any:
    """A sparse tensor as a dense one; others as they are."""
    return find("sparse.to_dense")(tensor) if is_sparse(tensor) else tensor
