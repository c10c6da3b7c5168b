"""Sound files of 16 bits (WAV) as tensors, and back."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.samples import case

_SOUND = np.array([[0.0], [0.5], [-0.5], [0.25]], np.float32)


def _fail(message: str) -> errors.InvalidArgumentError:
    return errors.invalid(message)


def _wav(samples: Array, rate: int) -> bytes:
    """A WAV file of samples [count, channels] in [-1, 1]."""
    count, channels = samples.shape
    scaled = np.clip(samples * np.float32(32768), -32768, 32767)
    body = np.trunc(scaled).astype("<i2").tobytes()
    head = struct.pack("<4sI4s", b"RIFF", 36 + len(body), b"WAVE")
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, rate * channels * 2, channels * 2, 16)
    return head + form + struct.pack("<4sI", b"data", len(body)) + body


def _sounds(op: Operation) -> list[TensorShape]:
    samples, channels = op._attrs["desired_samples"], op._attrs["desired_channels"]
    return [TensorShape([None if samples < 0 else samples, None if channels < 0 else channels]), SCALAR]


@op(
    "DecodeWav",
    "contents: string[0] -> audio: float, sample_rate: int32",
    "desired_channels: int = -1; desired_samples: int = -1",
    shape=_sounds,
    host=True,
    examples=[
        case(np.array(_wav(_SOUND, 8000), object)),
        case(np.array(_wav(_SOUND, 8000), object), desired_channels=2, desired_samples=6),
    ],
)
def _decode_wav(
    ctx: HostContext, contents: Array, *, desired_channels: int, desired_samples: int
) -> tuple[Array, np.int32]:
    data = np.asarray(contents, object).item()
    samples, rate = _read(data)
    have = samples.shape[1]
    wanted = have if desired_channels < 0 else desired_channels
    if wanted > have:
        samples = np.concatenate([samples] + [samples[:, -1:]] * (wanted - have), axis=1)
    samples = samples[:, :wanted]
    if desired_samples >= 0:
        samples = samples[:desired_samples]
        missing = desired_samples - len(samples)
        samples = np.pad(samples, [(0, missing), (0, 0)])
    return samples, np.int32(rate)


def _read(data: bytes) -> tuple[Array, int]:
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise _fail(f"Header mismatch: Expected RIFF but found {data[:4]!r}")
    position, channels, rate, bits = 12, 0, 0, 0
    while position + 8 <= len(data):
        kind, length = struct.unpack("<4sI", data[position : position + 8])
        body = data[position + 8 : position + 8 + length]
        if kind == b"fmt ":
            form, channels, rate, _, _, bits = struct.unpack("<HHIIHH", body[:16])
            if form != 1 or bits != 16:
                raise _fail(
                    f"Bad audio format for WAV: Expected 1 (PCM), 16 bits, but got {form}, {bits} bits"
                )
        elif kind == b"data" and channels:
            numbers = np.frombuffer(body[: len(body) // (2 * channels) * 2 * channels], "<i2")
            return (numbers.astype(np.float32) / np.float32(32768)).reshape(-1, channels), rate
        position += 8 + length + length % 2
    raise _fail("Incomplete WAV file: no data")


@op(
    "EncodeWav",
    "audio: float[2], sample_rate: int32[0] -> contents: string",
    shape=lambda op: SCALAR,
    host=True,
    examples=[case(_SOUND, np.int32(8000)), case(np.full((3, 2), 2.0, np.float32), np.int32(44100))],
)
def _encode_wav(ctx: HostContext, audio: Array, sample_rate: Array) -> Array:
    audio = np.asarray(audio)
    if audio.ndim != 2:
        raise _fail(f"audio must be 2-dimensional but got {list(audio.shape)}")
    out = np.empty((), object)
    out[()] = _wav(audio, int(sample_rate))
    return out


not_differentiable("DecodeWav", "EncodeWav")


class DecodeWav(NamedTuple):
    """What `tf.audio.decode_wav` gives."""

    audio: Tensor
    sample_rate: Tensor


@export("audio.decode_wav")
def decode_wav(
    contents: TensorLike, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodeWav:
    """The samples [count, channels] in [-1, 1] of a 16-bit WAV file, and how many a second has."""
    attrs: dict[str, Any] = dict(desired_channels=desired_channels, desired_samples=desired_samples)
    return DecodeWav(*apply_list("DecodeWav", contents, name=name, **attrs))


@export("audio.encode_wav")
def encode_wav(audio: TensorLike, sample_rate: TensorLike, name: str | None = None) -> Tensor:
    """The 16-bit WAV file of samples [count, channels] in [-1, 1]."""
    return apply("EncodeWav", audio, sample_rate, name=name)
