"""Spectra over time: short-time Fourier transforms, cosine transforms, mel scales."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tensorfleet.api.signal.frames import Size, frame, hann_window, overlap_and_add
from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.pad import pad
from tensorfleet.ops.array.shape import expand_dims, reshape
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.array.tile_roll_reverse import tile
from tensorfleet.ops.array.transpose import transpose
from tensorfleet.ops.math.binary import maximum
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.complex_numbers import complex as complex_
from tensorfleet.ops.math.complex_numbers import real
from tensorfleet.ops.math.fft import irfft, rfft
from tensorfleet.ops.math.reduce_functions import reduce_sum
from tensorfleet.ops.math.sums import linspace


def _scalar(x: TensorLike, name: str) -> Size:
    tensor = to_tensor(x, name=name)
    tensor.shape.assert_has_rank(0)
    value = constant_value(tensor)
    return tensor if value is None else int(value)


def _enclosing_power_of_two(value: Size) -> Size:
    if isinstance(value, int):
        # The smallest power of two that is not below the value.
        return 1 << max(value - 1, 0).bit_length()
    bits = apply("Ceil", apply("Log", cast(value, dtypes.float32)) / math.log(2.0))
    result: Size = cast(apply("Pow", 2.0, bits), value.dtype.base_dtype)
    return result


@export("signal.stft")
def stft(
    signals: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    fft_length: TensorLike = None,
    window_fn: Callable[..., Tensor] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The short-time Fourier transform: spectra [..., frames, fft_length / 2 + 1] of windowed frames."""
    with name_scope(name, "stft", [signals, frame_length, frame_step]):
        signals = to_tensor(signals, name="signals")
        length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
        size = _enclosing_power_of_two(length) if fft_length is None else _scalar(fft_length, "fft_length")
        framed = frame(signals, length, step, pad_end=pad_end)
        if window_fn is not None:
            framed = framed * window_fn(length, dtype=framed.dtype.base_dtype)
        return rfft(framed, [size])


@export("signal.inverse_stft_window_fn")
def inverse_stft_window_fn(
    frame_step: TensorLike, forward_window_fn: Callable[..., Tensor] = hann_window, name: str | None = None
) -> Callable[[TensorLike, DTypeLike], Tensor]:
    """The window for `inverse_stft` that undoes `forward_window_fn` in `stft`."""

    def inverse(frame_length: TensorLike, dtype: DTypeLike) -> Tensor:
        with name_scope(name, "inverse_stft_window_fn", None):
            length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
            window = forward_window_fn(length, dtype=dtype)
            overlaps = -(-length // step)
            squares = pad(apply("Square", window), [[0, overlaps * step - length]])
            summed = reduce_sum(reshape(squares, [overlaps, step]), 0, keepdims=True)
            total = reshape(tile(summed, [overlaps, 1]), [overlaps * step])
            return window / total[:length]

    return inverse


@export("signal.inverse_stft")
def inverse_stft(
    stfts: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    fft_length: TensorLike = None,
    window_fn: Callable[..., Tensor] | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """The signal of short-time spectra; `window_fn` as `inverse_stft_window_fn` gives it undoes `stft`."""
    with name_scope(name, "inverse_stft", [stfts]):
        spectra = to_tensor(stfts, name="stfts")
        length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
        size = _enclosing_power_of_two(length) if fft_length is None else _scalar(fft_length, "fft_length")
        frames = irfft(spectra, [size])
        if isinstance(size, int) and isinstance(length, int):
            if size > length:
                frames = frames[..., :length]
            elif size < length:
                room = apply(
                    "Fill", concat([shape_of(frames)[:-1], [length - size]], 0), to_tensor(0, frames.dtype)
                )
                frames = concat([frames, room], -1)
        else:
            frames = frames[..., :length]
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=frames.dtype.base_dtype)
        return overlap_and_add(frames, step)


# -- cosine transforms -------------------------------------------------------------------------------


def _check_dct(x: Tensor, kind: int, norm: str | None, n: int | None) -> None:
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if kind not in (1, 2, 3, 4):
        raise ValueError("Types I, II, III and IV (I)DCT are supported.")
    if kind == 1:
        if norm == "ortho":
            raise ValueError("Normalization is not supported for the Type-I DCT.")
        last = x.shape.as_list()[-1] if x.shape.rank else None
        if last is not None and last < 2:
            raise ValueError("Type-I DCT requires the dimension to be greater than one.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")


def _fit(x: Tensor, n: int | None) -> Tensor:
    """The last axis cut, or filled up with zeros, to n."""
    if n is None:
        return x
    known = x.shape.as_list()[-1]
    missing = maximum(n - shape_of(x)[-1], 0) if known is None else max(n - known, 0)
    if known is None or n > known:
        x = pad(x, [[0, 0]] * (len(x.shape.as_list()) - 1) + [[0, missing]])
    return x[..., :n]


@export("signal.dct", "spectral.dct")
def dct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete cosine transform along an axis, of type 1, 2, 3 or 4."""
    with name_scope(name, "dct", None):
        kind = input.dtype if isinstance(input, Tensor) and input.dtype.is_floating else dtypes.float32
        x = to_tensor(input, None if isinstance(input, Tensor) else kind)
        # The last axis can be transformed without knowing how many are before it.
        if x.shape.rank is None and axis == -1:
            dims = shape_of(x)
            flat = dct(reshape(x, [-1, dims[-1]]), type, n, norm=norm)
            return reshape(flat, concat([dims[:-1], shape_of(flat)[1:]], 0))
        rank = len(x.shape.as_list())
        if axis % rank != rank - 1:
            order = [i for i in range(rank) if i != axis % rank] + [axis % rank]
            back = [order.index(i) for i in range(rank)]
            return transpose(dct(transpose(x, order), type, n, norm=norm), back)
        _check_dct(x, type, norm, n)
        x = _fit(x, n)
        size = x.shape.as_list()[-1]
        length = shape_of(x)[-1] if size is None else size
        result = {1: _dct1, 2: _dct2, 3: _dct3, 4: _dct4}[type](x, length, norm)
        result.set_shape(x.shape)
        return result


def _phase(length: Size, factor: float, kind: DType) -> Tensor:
    """exp(i * factor * pi * k / (2 * length)) for k below the length."""
    places = cast(apply("Range", 0, length, 1), kind)
    angle = places * (factor * math.pi * 0.5) / cast(length, kind)
    return complex_(apply("Cos", angle), apply("Sin", angle))


def _wide(x: Tensor) -> Tensor:
    return complex_(x, apply("ZerosLike", x))


def _dct1(x: Tensor, length: Size, norm: str | None) -> Tensor:
    # A cosine transform of type 1 is the Fourier transform of the signal and its mirror image.
    mirrored = concat([x, apply("ReverseV2", x[..., 1:-1], [len(x.shape.as_list()) - 1])], -1)
    return real(rfft(mirrored, None))


def _dct2(x: Tensor, length: Size, norm: str | None) -> Tensor:
    kind = x.dtype.base_dtype
    # Of type 2: that of the signal and as many zeros, turned by half a sample.
    spectrum = rfft(x, [2 * length])[..., :length]
    result = real(spectrum * (_phase(length, -1.0, kind) * _wide(to_tensor(2.0, kind))))
    if norm != "ortho":
        return result
    first = 0.5 * apply("Rsqrt", cast(length, kind))
    others = first * math.sqrt(2.0)
    weights = concat([reshape(first, [1]), apply("Fill", reshape(length - 1, [1]), others)], 0)
    return result * weights


def _dct3(x: Tensor, length: Size, norm: str | None) -> Tensor:
    kind = x.dtype.base_dtype
    if norm == "ortho":
        first = apply("Sqrt", cast(length, kind))
        others = first * math.sqrt(0.5)
        x = x * concat([reshape(first, [1]), apply("Fill", reshape(length - 1, [1]), others)], 0)
    else:
        x = x * cast(length, kind)
    spectrum = _wide(x) * (_phase(length, 1.0, kind) * _wide(to_tensor(2.0, kind)))
    return irfft(spectrum, [2 * length])[..., :length]


def _dct4(x: Tensor, length: Size, norm: str | None) -> Tensor:
    doubled = _dct2(pad(x, [[0, 0]] * (len(x.shape.as_list()) - 1) + [[0, length]]), 2 * length, None)
    result = doubled[..., 1::2]
    if norm != "ortho":
        return result
    return result * (math.sqrt(0.5) * apply("Rsqrt", cast(length, x.dtype.base_dtype)))


@export("signal.idct", "spectral.idct")
def idct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The transform that undoes `dct` of that type, up to a factor unless `norm` is 'ortho'."""
    return dct(input, {1: 1, 2: 3, 3: 2, 4: 4}.get(type, type), n=n, axis=axis, norm=norm, name=name)


# -- mel scales --------------------------------------------------------------------------------------


_MEL_SLOPE, _MEL_BREAK = 1127.0, 700.0


def _mel(hertz: float) -> float:
    return _MEL_SLOPE * math.log(1.0 + hertz / _MEL_BREAK)


def _check_mel(bins: int, sample_rate: Tensor | float, low: float, high: float, kind: dtypes.DType) -> None:
    if bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {bins}")
    if low < 0.0:
        raise ValueError(f"lower_edge_hertz must be non-negative. Got: {low}")
    if low >= high:
        raise ValueError(f"lower_edge_hertz {low:.1f} >= upper_edge_hertz {high:.1f}")
    if not isinstance(sample_rate, Tensor):
        if sample_rate <= 0.0:
            raise ValueError(f"sample_rate must be positive. Got: {sample_rate}")
        if high > sample_rate / 2:
            raise ValueError(
                f"upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). Got {high} for "
                f"sample_rate: {sample_rate}"
            )
    if not kind.is_floating:
        raise ValueError(f"dtype must be a floating point type. Got: {kind}")


@export("signal.linear_to_mel_weight_matrix")
def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: Tensor | int = 129,
    sample_rate: Tensor | float = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The matrix [spectrogram bins, mel bins] that turns a linear spectrogram into a mel one."""
    with name_scope(name, "linear_to_mel_weight_matrix"):
        kind = dtypes.as_dtype(dtype)
        rate, bins = _number(sample_rate), _number(num_spectrogram_bins)
        _check_mel(num_mel_bins, rate, lower_edge_hertz, upper_edge_hertz, kind)
        # Frequency zero takes no part.
        lines = linspace(to_tensor(0, kind), cast(rate, kind) / 2.0, bins)[1:]
        mels = expand_dims(_MEL_SLOPE * apply("Log", 1.0 + lines / _MEL_BREAK), 1)
        edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
        low, centre, high = (edges[i : num_mel_bins + i].astype(kind.np_dtype) for i in range(3))
        rising, falling = (mels - low) / (centre - low), (high - mels) / (high - centre)
        weights = apply("Maximum", to_tensor(0, kind), apply("Minimum", rising, falling))
        return pad(weights, [[1, 0], [0, 0]])


def _number(x: Tensor | float) -> Tensor | float:
    """The number a tensor is known to be, else the tensor; other values as they are."""
    value = constant_value(x) if isinstance(x, Tensor) else None
    return x if value is None else value.item()


@export("signal.mfccs_from_log_mel_spectrograms")
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients of log-magnitude mel spectrograms [..., mel bins]."""
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        x = to_tensor(log_mel_spectrograms)
        last = x.shape.as_list()[-1] if x.shape.rank else None
        if last == 0:
            raise ValueError(f"num_mel_bins must be positive. Got: {x}")
        count = cast(shape_of(x)[-1], x.dtype.base_dtype) if last is None else last
        return dct(x, type=2) * apply("Rsqrt", cast(count * 2.0, x.dtype.base_dtype))
