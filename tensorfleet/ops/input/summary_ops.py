"""Ops that give serialized `Summary` messages: scalars, histograms, images, sounds, tensors."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.formats import png
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.registry import get, not_differentiable, op
from tensorfleet.ops.common import require, scalar
from tensorfleet.ops.samples import case

if TYPE_CHECKING:
    from tensorfleet.base.protos import HistogramProto, Summary, TensorProto

_REAL = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
_TAG = np.array(b"a/b", object)


def _new_summary() -> Summary:
    from tensorfleet.base.protos import Summary

    return Summary()


def _serialized(summary: Summary) -> Array:
    out = np.empty((), object)
    out[()] = summary.SerializeToString()
    return out


def text_of(value: Array | bytes) -> str:
    """One string of a tensor, for a field of a message."""
    item: bytes | str = np.asarray(value).item()
    return item.decode(errors="replace") if isinstance(item, bytes) else item


def _dims(array: Array) -> str:
    return "[" + ",".join(map(str, np.shape(array))) + "]"


# -- numbers -----------------------------------------------------------------------------------------


@op(
    "ScalarSummary",
    "tags: string, values: T -> summary: string",
    f"T: {_REAL}",
    shape=scalar,
    host=True,
    examples=[
        case(_TAG, np.float32(1.5)),
        case(np.array([b"x", b"y"], object), np.array([1, -2], np.int64)),
        case(np.zeros(0, object), np.zeros(0)),
    ],
)
def scalar_summary(ctx: HostContext, tags: Array, values: Array) -> Array:
    """A serialized `Summary` with one number for each tag."""
    tags = np.asarray(tags, object)
    if np.shape(tags) != np.shape(values):
        tag = f" (tag '{text_of(tags)}')" if tags.size == 1 else ""
        require(False, f"tags and values are not the same shape: {_dims(tags)} != {_dims(values)}{tag}")
    summary = _new_summary()
    numbers = np.asarray(values).astype(np.float32)
    for tag, value in zip(tags.ravel(), numbers.ravel().tolist(), strict=True):
        summary.value.add(tag=text_of(tag), simple_value=value)
    return _serialized(summary)


@functools.cache
def _bucket_limits() -> Array:
    """Upper ends of TensorFlow's buckets: 1e-12 and each next a tenth larger, on both sides of zero."""
    ends = []
    end = 1.0e-12
    while end < 1.0e20:
        ends.append(end)
        end *= 1.1
    ends.append(float(np.finfo(np.float64).max))
    return np.array([-e for e in reversed(ends)] + [0.0] + ends)


# The leading bits of a double leave at most two buckets for it: neighbouring limits are a tenth apart.
_LEADING_BITS = 17
# From so many numbers on, a table by leading bits is faster than a binary search for each.
_MIN_FOR_TABLE = 10_000


@functools.cache
def _cells() -> tuple[Array, Array]:
    """For each value of a number's leading bits: the first bucket that fits, and where the next begins."""
    limits = _bucket_limits()
    rest = np.uint64(64 - _LEADING_BITS)
    bits = np.arange(1 << _LEADING_BITS, dtype=np.uint64) << rest
    ends = [bits.view(np.float64), (bits | ((np.uint64(1) << rest) - np.uint64(1))).view(np.float64)]
    first = limits.searchsorted(np.fmin(*ends), side="right")
    return first.astype(np.int32), np.append(limits, np.inf)[first]


def _buckets_of(values: Array) -> Array:
    """The bucket of each number: how many limits are at or below it."""
    if values.size < _MIN_FOR_TABLE:
        return _bucket_limits().searchsorted(values, side="right")
    first, next_limit = _cells()
    cell = (values.view(np.uint64) >> np.uint64(64 - _LEADING_BITS)).view(np.int64)
    return first[cell] + (values >= next_limit[cell])


def _fill_histogram(histo: HistogramProto, values: Array) -> None:
    limits = _bucket_limits()
    largest = limits[-1]
    histo.min = values.min(initial=largest)
    histo.max = values.max(initial=-largest)
    histo.num = values.size
    if values.size:  # added one after the other, so that the sums are TensorFlow's to the last bit
        histo.sum = np.add.accumulate(values)[-1]
        histo.sum_squares = np.add.accumulate(values * values)[-1]
    places = np.minimum(_buckets_of(values), limits.size - 1)
    counts = np.bincount(places, minlength=limits.size)
    # Of neighbouring empty buckets only the last is written.
    kept = (counts > 0) | np.append(counts[1:] > 0, True)
    histo.bucket_limit.extend(limits[kept].tolist())
    histo.bucket.extend(counts[kept].astype(np.float64).tolist())


@op(
    "HistogramSummary",
    "tag: string, values: T -> summary: string",
    f"T: {_REAL} = float",
    shape=scalar,
    host=True,
    examples=[
        case(_TAG, np.array([[1.5, -2.0], [0.0, 1e25]])),
        case(_TAG, np.zeros((0, 2), np.float32)),
        case(_TAG, np.full(5, 7, np.int32)),
    ],
)
def histogram_summary(ctx: HostContext, tag: Array, values: Array) -> Array:
    """A serialized `Summary` with the histogram of all values."""
    require(np.ndim(tag) == 0, "tags must be scalar")
    numbers = np.asarray(values).astype(np.float64).ravel()
    odd = ~np.isfinite(numbers)
    if odd.any():
        what = "Nan in summary histogram" if np.isnan(numbers[odd][0]) else "Infinity in Histogram"
        require(False, f"{what} for: {ctx.op.name}")
    summary = _new_summary()
    _fill_histogram(summary.value.add(tag=text_of(tag)).histo, numbers)
    return _serialized(summary)


# -- images ------------------------------------------------------------------------------------------


def _tags(tag: Array, kind: str, count: int, limit: int) -> Iterator[str]:
    """The tags of `count` values: numbered, unless only one is ever asked for."""
    base = f"{text_of(tag)}/{kind}"
    return iter([base] if limit == 1 and count else [f"{base}/{i}" for i in range(count)])


def _pixels(image: Array, bad_color: Array) -> Array:
    """One float image as bytes: [0, max] becomes 0 to 255, or zero 128 where there are negative values."""
    good = np.isfinite(image).all(-1)
    known = image[good]
    low, high = known.astype(np.float32).min(initial=0), known.astype(np.float32).max(initial=0)
    reach, top, offset = (max(-low, high), 127, 128) if low < 0 else (high, 255, 0)
    scale = np.float32(0) if reach < 1e-6 else np.float32(top) / reach
    kind = image.dtype.type
    pixels = np.empty(image.shape, np.uint8)
    pixels[good] = (known * kind(scale) + kind(offset)).astype(np.uint8)
    pixels[~good] = bad_color[: image.shape[-1]]
    return pixels


def _check_bad_color(bad_color: Array, depth: int) -> None:
    kind = {"float32": "float", "float64": "double"}.get(bad_color.dtype.name, bad_color.dtype.name)
    require(bad_color.dtype == np.uint8, f"bad_color must be uint8, got {kind}")
    require(bad_color.ndim == 1, f"bad_color must be a vector, got shape {_dims(bad_color)}")
    size = bad_color.size
    text = f"expected depth <= bad_color.size, got depth = {depth}, bad_color.size = {size}"
    require(depth <= size, text)


@op(
    "ImageSummary",
    "tag: string, tensor: T -> summary: string",
    "max_images: int >= 1 = 3; T: {uint8, float, half, double} = float; bad_color: tensor",
    shape=scalar,
    host=True,
)
def image_summary(ctx: HostContext, tag: Array, tensor: Array, *, max_images: int, bad_color: Array) -> Array:
    """A serialized `Summary` with the first images, as PNG."""
    require(np.ndim(tag) == 0, "Tags must be a scalar")
    images, shape = np.asarray(tensor), np.shape(tensor)
    text = f"Tensor must be 4-D with last dim 1, 3, or 4, not {_dims(images)}"
    require(len(shape) == 4 and shape[3] in (1, 3, 4), text)
    text = f"input tensor must have non-zero dims. Found: [{', '.join(map(str, shape))}]."
    require(0 not in shape[1:], text)
    if images.dtype != np.uint8:
        _check_bad_color(bad_color, shape[3])
    summary = _new_summary()
    count = min(max_images, shape[0])
    for name, image in zip(_tags(tag, "image", count, max_images), images[:count], strict=True):
        pixels = image if image.dtype == np.uint8 else _pixels(image, bad_color)
        entry = summary.value.add(tag=name).image
        entry.height, entry.width, entry.colorspace = shape[1:]
        entry.encoded_image_string = png.encode(pixels)
    return _serialized(summary)


def _give_default(op_type: str, name: str, value: Array) -> None:
    """Gives an attribute that holds a tensor its default, which a declaration has no way to write."""
    spec = get(op_type)
    value.flags.writeable = False
    spec.attrs = {**spec.attrs, name: replace(spec.attrs[name], default=value)}


_give_default("ImageSummary", "bad_color", np.array([255, 0, 0, 255], np.uint8))


# -- sounds ------------------------------------------------------------------------------------------


def _wav(samples: Array, rate: int) -> bytes:
    """The WAV file of samples [frames, channels] between -1 and 1, as 16-bit numbers."""
    channels = samples.shape[1]
    wide = np.nan_to_num(samples.astype(np.float64), posinf=1, neginf=-1) * 32768
    rounded = np.copysign(np.floor(np.abs(wide) + 0.5), wide)
    data: bytes = np.clip(rounded, -32768, 32767).astype("<i2").tobytes()
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, rate * channels * 2, channels * 2, 16)
    body = b"WAVE" + form + struct.pack("<4sI", b"data", len(data)) + data
    return struct.pack("<4sI", b"RIFF", len(body)) + body


@op(
    "AudioSummaryV2",
    "tag: string, tensor: float, sample_rate: float -> summary: string",
    "max_outputs: int >= 1 = 3",
    shape=scalar,
    host=True,
    examples=[
        case(_TAG, np.array([[0.0, 0.5, -1.0]], np.float32), np.float32(44100)),
        case(_TAG, np.array([[[0.1, 2.0], [-0.3, np.nan]]], np.float32), np.float32(2.5), max_outputs=1),
    ],
)
def audio_summary(
    ctx: HostContext, tag: Array, tensor: Array, sample_rate: Array, *, max_outputs: int
) -> Array:
    """A serialized `Summary` with the first sounds, as WAV."""
    require(np.ndim(tag) == 0, "Tag must be a scalar")
    require(np.size(sample_rate) == 1, "sample_rate must be rank-0 or contain a single value")
    require(np.ndim(tensor) in (2, 3), f"Tensor must be 3-D or 2-D, got: {_dims(tensor)}")
    rate = np.asarray(sample_rate).item()
    require(rate > 0, "sample_rate must be > 0")
    sounds = np.asarray(tensor)
    sounds = sounds[..., None] if sounds.ndim == 2 else sounds
    summary = _new_summary()
    count = min(max_outputs, len(sounds))
    for name, samples in zip(_tags(tag, "audio", count, max_outputs), sounds[:count], strict=True):
        audio = summary.value.add(tag=name).audio
        audio.sample_rate, audio.content_type = rate, "audio/wav"
        audio.length_frames, audio.num_channels = samples.shape
        audio.encoded_audio_string = _wav(samples, max(1, round(rate)))
    return _serialized(summary)


# -- tensors -----------------------------------------------------------------------------------------


def _set_tensor(target: TensorProto, value: Array, dtype: dtypes.DType) -> None:
    """A tensor as raw bytes, whatever its size."""
    array = np.asarray(value)
    target.dtype = dtype.as_datatype_enum
    target.tensor_shape.CopyFrom(TensorShape(array.shape).as_proto())
    if dtype == dtypes.string:
        target.string_val.extend(array.ravel().tolist())
    else:
        target.tensor_content = np.ascontiguousarray(array).tobytes()


@op(
    "TensorSummaryV2",
    "tag: string, tensor: T, serialized_summary_metadata: string -> summary: string",
    "T: type",
    shape=scalar,
    host=True,
    examples=[
        case(_TAG, np.array([[1.5, 2.0]]), np.array(b"\n\x06\n\x04text", object)),
        case(_TAG, np.float32(3), np.array(b"", object)),
        case(_TAG, np.array([b"x", b"yz"], object), np.array(b"", object)),
    ],
)
def _tensor_summary_v2(ctx: HostContext, tag: Array, tensor: Array, metadata: Array, *, T: DType) -> Array:
    require(np.ndim(tag) == 0, "tag must be scalar")
    require(np.ndim(metadata) == 0, "serialized_summary_metadata must be scalar")
    from google.protobuf.message import DecodeError

    summary = _new_summary()
    value = summary.value.add(tag=text_of(tag))
    value.metadata.SetInParent()
    try:
        value.metadata.MergeFromString(np.asarray(metadata).item())
    except DecodeError:
        value.metadata.Clear()
        value.metadata.SetInParent()
    _set_tensor(value.tensor, tensor, T)
    return _serialized(summary)


@op(
    "TensorSummary",
    "tensor: T -> summary: string",
    "T: type; description: string = ''; labels: list(string) = []; display_name: string = ''",
    shape=scalar,
    host=True,
    examples=[case(np.array([1.5, 2.0]))],
)
def _tensor_summary(ctx: HostContext, tensor: Array, *, T: DType) -> Array:
    summary = _new_summary()
    _set_tensor(summary.value.add(node_name=ctx.op.name).tensor, tensor, T)
    return _serialized(summary)


# -- several in one ----------------------------------------------------------------------------------


def _sample_summary(tag: bytes) -> Array:
    """A summary of one scalar, written out: making it would load the messages at start-up."""
    value = b"\n" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", 1.5)
    return np.array(b"\n" + bytes([len(value)]) + value, object)


@op(
    "MergeSummary",
    "inputs: N * string -> summary: string",
    "N: int",
    shape=scalar,
    host=True,
    examples=[case([_sample_summary(b"a"), _sample_summary(b"b")]), case([np.array(b"", object)])],
)
def _merge_summary(ctx: HostContext, inputs: list[Array]) -> Array:
    from google.protobuf.message import DecodeError

    merged = _new_summary()
    for data in (item for value in inputs for item in np.asarray(value, object).ravel()):
        try:
            merged.MergeFromString(data)
        except DecodeError:
            require(False, "Could not parse one of the summary inputs")
    tags: set[str] = set()
    for value in merged.value:
        require(not value.tag or value.tag not in tags, f"Duplicate tag {value.tag} found in summary inputs")
        tags.add(value.tag)
    return _serialized(merged)


not_differentiable("ScalarSummary", "HistogramSummary", "ImageSummary", "AudioSummaryV2")
not_differentiable("TensorSummaryV2", "TensorSummary", "MergeSummary")
