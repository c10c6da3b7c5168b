"""Signals cut into overlapping frames, windows over them, and their sum again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.constructors import range_
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.pad import pad
from tensorfleet.ops.array.shape import expand_dims, reshape
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.array.tile_roll_reverse import roll
from tensorfleet.ops.array.transpose import transpose
from tensorfleet.ops.math.binary import maximum
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.reduce_functions import reduce_prod, reduce_sum

#: A length in samples: a number, or a tensor when only the step knows it.
Size: TypeAlias = "int | Tensor"


def _known(x: Tensor) -> Size:
    """The number a scalar tensor is known to be, else the tensor."""
    value = constant_value(x)
    return x if value is None else int(value)


@export("signal.frame")
def frame(
    signal: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    pad_end: bool = False,
    pad_value: TensorLike = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """Overlapping frames of a signal: the axis becomes two, [frames, frame_length].

    With `pad_end`, frames that reach beyond the end are kept, filled up with `pad_value`.
    """
    with name_scope(name, "frame", [signal, frame_length, frame_step, pad_value]):
        signal = to_tensor(signal, name="signal")
        length = to_tensor(frame_length, name="frame_length")
        step = to_tensor(frame_step, name="frame_step")
        for what, t in (("frame_length", length), ("frame_step", step)):
            t.shape.assert_has_rank(0)
            if not t.dtype.is_integer:
                raise ValueError(f"{what} must be an integer, got {t.dtype.name}.")
        signal.shape.with_rank_at_least(1)
        rank = signal.shape.rank
        if rank is not None:
            axis = axis % rank
        return _framed(signal, _known(length), _known(step), pad_end, pad_value, axis)


def _framed(
    signal: Tensor, length: Size, step: Size, pad_end: bool, pad_value: TensorLike, axis: int
) -> Tensor:
    rank = signal.shape.rank
    place: Any = axis if rank is not None or axis >= 0 else apply("Rank", signal) + axis
    count = None if rank is None else signal.shape.as_list()[axis]
    size = shape_of(signal)[place] if count is None else count
    if pad_end:
        frames = -(-size // step)
        needed = length + step * (frames - 1) - size
        extra = max(needed, 0) if isinstance(needed, int) else maximum(needed, 0)
        filler = to_tensor(pad_value, signal.dtype.base_dtype, name="pad_value")
        filler.shape.assert_has_rank(0)
        signal = pad(signal, _at_the_end(signal, place, extra), constant_values=filler)
    else:
        frames = 1 + (size - length) // step
        frames = max(frames, 0) if isinstance(frames, int) else maximum(frames, 0)
    if all(isinstance(v, int) for v in (frames, length, step)):
        places: Any = np.arange(frames)[:, None] * step + np.arange(length)[None, :]
        places = places.astype(np.int32)
    else:
        places = expand_dims(range_(frames) * step, 1) + expand_dims(range_(length), 0)
    # Of all of the signal, so that its gradient is a tensor and not rows of one.
    return gather(signal[...], places, axis=place)


def _at_the_end(signal: Tensor, axis: Any, extra: Any) -> TensorLike:
    """The argument of `pad` that makes one axis longer."""
    rank = signal.shape.rank
    if rank is not None:
        return [[0, 0]] * axis + [[0, extra]] + [[0, 0]] * (rank - axis - 1)
    here = cast(apply("Equal", range_(apply("Rank", signal)), axis), dtypes.int32) * extra
    return apply("Pack", [here * 0, here], axis=1)


@export("signal.overlap_and_add")
def overlap_and_add(signal: TensorLike, frame_step: TensorLike, name: str | None = None) -> Tensor:
    """The signal whose overlapping frames are the last two axes: overlapping parts are added."""
    with name_scope(name, "overlap_and_add", [signal, frame_step]):
        signal = to_tensor(signal, name="signal")
        signal.shape.with_rank_at_least(2)
        step = to_tensor(frame_step, name="frame_step")
        step.shape.assert_has_rank(0)
        if not step.dtype.is_integer:
            raise ValueError(f"frame_step must be an integer. Got {step.dtype}")
        known = [None, None] if signal.shape.rank is None else signal.shape.as_list()
        dims = shape_of(signal)
        frames = dims[-2] if known[-2] is None else known[-2]
        length = dims[-1] if known[-1] is None else known[-1]
        # Frames that do not overlap are the signal itself.
        if isinstance(length, int) and length == _known(step):
            whole = reshape(signal, concat([dims[:-2], [frames * length]], 0), name="fast_path")
            whole.set_shape([*known[:-2], frames * length if isinstance(frames, int) else None])
            return whole
        result = _added(signal, dims[:-2], frames, length, _known(step))
        if signal.shape.rank is not None:
            hop, total = _known(step), None
            if isinstance(frames, int) and isinstance(length, int) and isinstance(hop, int):
                total = (frames - 1) * hop + length
            result.set_shape([*known[:-2], total])
        return result


def _added(signal: Tensor, outer: Tensor, frames: Size, length: Size, step: Size) -> Tensor:
    """Each frame is cut into pieces of one step; shifting rows lines up the pieces that overlap."""
    pieces = -(-length // step)
    rows = reduce_prod(outer)
    # One more row of pieces per frame: read as one line, each frame then lies one step further on.
    x = pad(reshape(signal, [rows, frames, length]), [[0, 0], [0, pieces], [0, pieces * step - length]])
    x = reshape(x, [rows, frames + pieces, pieces, step])
    x = reshape(transpose(x, [0, 2, 1, 3]), [rows, (frames + pieces) * pieces, step])
    x = reshape(x[:, : (frames + pieces - 1) * pieces], [rows, pieces, frames + pieces - 1, step])
    x = reshape(reduce_sum(x, 1), [rows, (frames + pieces - 1) * step])
    total = (frames - 1) * step + length
    return reshape(x[:, :total], concat([outer, [total]], 0))


# -- windows -----------------------------------------------------------------------------------------


def _raised_cosine(
    name: str | None,
    default: str,
    window_length: TensorLike,
    periodic: TensorLike,
    dtype: DTypeLike,
    a: float,
    b: float,
) -> Tensor:
    kind = dtypes.as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {kind}")
    with name_scope(name, default, [window_length, periodic]):
        length = to_tensor(window_length, dtypes.int32, name="window_length")
        length.shape.assert_has_rank(0)
        known = constant_value(length)
        if known is not None and int(known) == 1:
            return apply("Fill", [1], to_tensor(1, kind), name="ones")
        # A periodic window of odd length is the symmetric one, as TensorFlow 1 has it.
        even = 1 - length % 2
        total = cast(length + cast(periodic, dtypes.int32) * even - 1, kind)
        places = cast(range_(length), kind)
        turn = np.asarray(2 * math.pi, kind.np_dtype)
        return apply("Sub", to_tensor(a, kind), to_tensor(b, kind) * apply("Cos", turn * places / total))


@export("signal.hann_window")
def hann_window(
    window_length: TensorLike,
    periodic: TensorLike = True,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """A Hann window: a raised cosine that ends at zero; periodic for spectra, symmetric for filters."""
    return _raised_cosine(name, "hann_window", window_length, periodic, dtype, 0.5, 0.5)


@export("signal.hamming_window")
def hamming_window(
    window_length: TensorLike,
    periodic: TensorLike = True,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """A Hamming window: a raised cosine that ends above zero."""
    return _raised_cosine(name, "hamming_window", window_length, periodic, dtype, 0.54, 0.46)


# -- shifting spectra --------------------------------------------------------------------------------


def _shifted(
    x: TensorLike, axes: int | Sequence[int] | None, name: str | None, default: str, back: bool
) -> Tensor:
    with name_scope(name, default, [x]):
        x = to_tensor(x)
        if axes is None and x.shape.rank is None:
            half = shape_of(x) // 2
            return roll(x, -half if back else half, range_(apply("Rank", x)))
        if axes is None:
            axes = list(range(len(x.shape.as_list())))
        chosen = [axes] if isinstance(axes, int) else list(axes)
        sizes = [shape_of(x)[a] if x.shape.as_list()[a] is None else x.shape.as_list()[a] for a in chosen]
        shifts = [-(s // 2) if back else s // 2 for s in sizes]
        if isinstance(axes, int):
            return roll(x, shifts[0], axes)
        return roll(x, shifts, chosen)


@export("signal.fftshift")
def fftshift(x: TensorLike, axes: int | Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """A spectrum with frequency zero moved to the middle."""
    return _shifted(x, axes, name, "fftshift", False)


@export("signal.ifftshift")
def ifftshift(x: TensorLike, axes: int | Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """Undoes `fftshift`."""
    return _shifted(x, axes, name, "ifftshift", True)
