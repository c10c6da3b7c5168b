"""What speech recognition looks at in a sound: spectrograms, and cepstral coefficients on the mel scale."""

from __future__ import annotations

from functools import cache

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.image import audio
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.samples import case

_PLACE = "contrib.framework.python.ops.audio_ops"
_WAVES = np.sin(np.arange(64, dtype=np.float32).reshape(32, 2))
_SILENCE_ENERGY = 1e-12  # what the logarithm of silence is taken of


def _transform_length(window: int) -> int:
    """The power of two that a window is filled up to."""
    return 1 << max(window - 1, 0).bit_length()


def _spectrogram_shape(op: Operation) -> TensorShape:
    samples, channels = op._inputs[0].shape.with_rank(2).as_list()
    window, stride = op._attrs["window_size"], op._attrs["stride"]
    if window <= 1:
        raise ValueError(f"Window size must be > 1, got {window}")
    if stride <= 0:
        raise ValueError(f"Stride must be strictly positive, got {stride}")
    frames = None if samples is None else max(1 + (samples - window) // stride, 0)
    return TensorShape([channels, frames, 1 + _transform_length(window) // 2])


@op(
    "AudioSpectrogram",
    "input: float[2] -> spectrogram: float",
    "window_size: int; stride: int; magnitude_squared: bool = false",
    shape=_spectrogram_shape,
    host=True,
    examples=[
        case(_WAVES, window_size=8, stride=4),
        case(_WAVES, window_size=11, stride=3, magnitude_squared=True),
        case(_WAVES[:5], window_size=8, stride=4),
    ],
)
def _audio_spectrogram(
    ctx: HostContext, sound: Array, *, window_size: int, stride: int, magnitude_squared: bool
) -> Array:
    length = _transform_length(window_size)
    if len(sound) < window_size:
        return np.zeros((sound.shape[1], 0, 1 + length // 2), np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(np.asarray(sound).T, window_size, axis=1)[:, ::stride]
    weights = 0.5 - 0.5 * np.cos(2 * np.pi / window_size * np.arange(window_size))
    spectrum = np.fft.rfft(frames.astype(np.float64) * weights, length)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
    return power if magnitude_squared else np.sqrt(power)


@cache
def _mel_weights(size: int, rate: int, low: float, high: float, bands: int) -> Array:
    """How much of each frequency's magnitude goes into each band: triangles that overlap by half."""

    def mel(frequency: float) -> Array:
        result: Array = 1127.0 * np.log1p(frequency / 700.0)
        return result

    width = 0.5 * rate / (size - 1)
    first, last = int(1.5 + low / width), int(high / width)
    edges = mel(low) + (mel(high) - mel(low)) / (bands + 1) * np.arange(bands + 2)
    weights = np.zeros((size, bands))
    for place in range(max(first, 0), min(last, size - 1) + 1):
        here = mel(place * width)
        band = int(np.searchsorted(edges[1:-1], here)) - 1  # the last whose middle lies below
        below = (edges[band + 2] - here) / (edges[band + 2] - edges[band + 1])
        if band >= 0:
            weights[place, band] = below
        if band + 1 < bands:
            weights[place, band + 1] = 1 - below
    return weights


def _mfcc_shape(op: Operation) -> TensorShape:
    channels, frames, _ = op._inputs[0].shape.with_rank(3).as_list()
    return TensorShape([channels, frames, op._attrs["dct_coefficient_count"]])


@op(
    "Mfcc",
    "spectrogram: float[3], sample_rate: int32[0] -> output: float",
    "upper_frequency_limit: float = 4000; lower_frequency_limit: float = 20; filterbank_channel_count: int = 40; "
    "dct_coefficient_count: int = 13",
    shape=_mfcc_shape,
    host=True,
    examples=[
        case(np.abs(_WAVES[:, :1] * np.ones((2, 1, 65), np.float32)), np.int32(16000)),
        case(np.ones((1, 2, 129), np.float32), np.int32(8000), filterbank_channel_count=20),
    ],
)
def _mfcc(ctx: HostContext, spectrogram: Array, rate: Array, *, op: Operation) -> Array:
    attrs, size = op._attrs, spectrogram.shape[-1]
    low, high = attrs["lower_frequency_limit"], attrs["upper_frequency_limit"]
    bands, kept = attrs["filterbank_channel_count"], attrs["dct_coefficient_count"]
    if size < 2 or bands < 1 or not 0 <= low < high or rate <= 0:
        raise errors.invalid(
            f"No filter bank of {bands} bands from {low} to {high} Hz fits {size} frequencies at a rate of {rate}."
        )
    if kept > bands or kept < 1:
        raise errors.invalid(f"{kept} coefficients cannot be had of {bands} bands; take at most as many.")
    heard = np.sqrt(spectrogram.astype(np.float64)) @ _mel_weights(size, int(rate), low, high, bands)
    angles = np.arange(kept)[:, None] * (np.pi / bands) * (np.arange(bands) + 0.5)
    cosines = np.sqrt(2.0 / bands) * np.cos(angles)
    result: Array = (np.log(np.maximum(heard, _SILENCE_ENERGY)) @ cosines.T).astype(np.float32)
    return result


not_differentiable("AudioSpectrogram", "Mfcc")

audio_spectrogram = op_function(
    "AudioSpectrogram",
    "input, window_size, stride, magnitude_squared=False, name=None",
    f"{_PLACE}.audio_spectrogram",
    "The magnitudes of a sound's frequencies [channels, frames, frequencies], window by window.",
)

mfcc = op_function(
    "Mfcc",
    "spectrogram, sample_rate, upper_frequency_limit=4000, lower_frequency_limit=20, filterbank_channel_count=40, "
    "dct_coefficient_count=13, name=None",
    f"{_PLACE}.mfcc",
    "The cepstral coefficients of a spectrogram of squared magnitudes, on the mel scale.",
)

export(f"{_PLACE}.decode_wav")(audio.decode_wav)
export(f"{_PLACE}.encode_wav")(audio.encode_wav)
