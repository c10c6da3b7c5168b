"""`tf.train.Example` messages read straight from their bytes: where the values of each feature are, and what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorfleet.base.types import Array

MISSING, BYTES, FLOATS, INTS = 0, 1, 2, 3
_FIXED32, _FIXED64, _LENGTH, _VARINT = 5, 1, 2, 0
Spans = list[tuple[int, int]]
#: a feature: which kind of list it holds, and where in the record its values are
Feature = tuple[int, Spans]


class Malformed(ValueError):
    """The bytes are not the message they should be."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
        if shift > 63:
            raise Malformed


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message as (number, wire type, start, end of the value)."""
    while at < end:
        tag, at = _varint(data, at)
        wire, start = tag & 7, at
        if wire == _LENGTH:
            size, start = _varint(data, at)
            at = start + size
        elif wire == _VARINT:
            at = _varint(data, at)[1]
        elif wire == _FIXED32:
            at += 4
        elif wire == _FIXED64:
            at += 8
        else:
            raise Malformed
        if at > end or tag < 8:
            raise Malformed
        yield tag >> 3, wire, start, at


def _feature(data: bytes, at: int, end: int) -> Feature:
    if at == end:
        return MISSING, []
    # Nearly always one list, and of numbers one packed field. Anything else takes the long way.
    kind = data[at] >> 3
    if data[at] & 7 == _LENGTH and kind <= INTS:
        size, start = _varint(data, at + 1)
        if start + size == end:
            if kind == BYTES:
                spans = _plain_strings(data, start, end)
                if spans is not None:
                    return BYTES, spans
            elif start < end and data[start] == 0x0A:
                size, start = _varint(data, start + 1)
                if start + size == end and not (
                    size % 4 if kind == FLOATS else size and data[end - 1] >= 0x80
                ):
                    return kind, [(start, end)]
    return _any_feature(data, at, end)


def _plain_strings(data: bytes, at: int, end: int) -> Spans | None:
    spans = []
    while at < end:
        if data[at] != 0x0A:
            return None
        size, start = _varint(data, at + 1)
        at = start + size
        spans.append((start, at))
    return spans if at == end else None


def _any_feature(data: bytes, at: int, end: int) -> Feature:
    kind = MISSING
    spans: Spans = []
    for number, wire, start, stop in _fields(data, at, end):
        if wire != _LENGTH or number > INTS:
            continue
        if number != kind:
            kind, spans = number, []
        scalar = _FIXED32 if kind == FLOATS else _VARINT
        for inner, how, a, b in _fields(data, start, stop):
            if inner != 1:
                continue
            if how != _LENGTH and (how != scalar or kind == BYTES):
                raise Malformed
            if (kind == FLOATS and (b - a) % 4) or (kind == INTS and b > a and data[b - 1] >= 0x80):
                raise Malformed
            spans.append((a, b))
    return kind, spans


def _features(data: bytes, at: int, end: int, features: dict[bytes, Feature]) -> None:
    for number, wire, start, stop in _fields(data, at, end):
        if number != 1 or wire != _LENGTH:
            continue
        if start < stop and data[start] == 0x0A:
            size, after = _varint(data, start + 1)
            after += size
            if after < stop and data[after] == 0x12:
                length, first = _varint(data, after + 1)
                if first + length == stop:
                    features[data[after - size : after]] = _feature(data, first, stop)
                    continue
        key = b""
        feature: Feature = (MISSING, [])
        for inner, how, a, b in _fields(data, start, stop):
            if how == _LENGTH and inner == 1:
                key = data[a:b]
            elif how == _LENGTH and inner == 2:
                feature = _feature(data, a, b)
        features[key] = feature


def scan(data: bytes) -> dict[bytes, Feature]:
    """The features of a serialized Example."""
    result: dict[bytes, Feature] = {}
    try:
        for number, wire, start, stop in _fields(data, 0, len(data)):
            if number == 1 and wire == _LENGTH:
                _features(data, start, stop, result)
    except IndexError:
        raise Malformed from None
    return result


def scan_sequence(data: bytes) -> tuple[dict[bytes, Feature], dict[bytes, list[Feature]]]:
    """The context and the feature lists of a serialized SequenceExample."""
    context: dict[bytes, Feature] = {}
    lists: dict[bytes, list[Feature]] = {}
    try:
        for number, wire, start, stop in _fields(data, 0, len(data)):
            if wire == _LENGTH and number == 1:
                _features(data, start, stop, context)
            elif wire == _LENGTH and number == 2:
                for inner, how, a, b in _fields(data, start, stop):
                    if inner == 1 and how == _LENGTH:
                        key, features = _feature_list(data, a, b)
                        lists[key] = features
    except IndexError:
        raise Malformed from None
    return context, lists


def _feature_list(data: bytes, at: int, end: int) -> tuple[bytes, list[Feature]]:
    key, features = b"", []
    for number, wire, start, stop in _fields(data, at, end):
        if wire == _LENGTH and number == 1:
            key = data[start:stop]
        elif wire == _LENGTH and number == 2:
            features = [
                _feature(data, a, b) for n, w, a, b in _fields(data, start, stop) if n == 1 and w == _LENGTH
            ]
    return key, features


# -- values ------------------------------------------------------------------------------------------


def values(records: Sequence[tuple[bytes, Feature]], kind: int) -> tuple[Array, Array]:
    """The values of features of one kind, one after the other, and how many each has."""
    if kind == BYTES:
        counts = [len(spans) for _, (_, spans) in records]
        return objects([data[a:b] for data, (_, spans) in records for a, b in spans]), np.array(
            counts, np.int64
        )
    pieces = [_packed(data, spans) for data, (_, spans) in records]
    packed = np.frombuffer(b"".join(pieces), np.uint8)
    sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
    if kind == FLOATS:
        return packed.view("<f4"), sizes // 4
    last = np.concatenate([[0], np.cumsum(packed < 0x80)])
    ends = np.cumsum(sizes)
    return varints(packed), last[ends] - last[ends - sizes]


def _packed(data: bytes, spans: Spans) -> bytes:
    if len(spans) == 1:
        ((a, b),) = spans
        return data[a:b]
    return b"".join([data[a:b] for a, b in spans])


def objects(items: Sequence[Any]) -> Array:
    """A vector of Python objects."""
    result = np.empty(len(items), object)
    result[:] = items
    return result


def varints(packed: Array) -> Array:
    """The numbers that are packed into some bytes."""
    if (packed < 0x80).all():
        return packed.astype(np.int64)
    result: Array = numbers_at(packed[None], *number_places(packed))[0]
    return result


def number_places(packed: Array) -> tuple[Array, Array]:
    """Where each number starts and how many bytes it has."""
    stops = np.flatnonzero(packed < 0x80) + 1
    widths = np.diff(stops, prepend=0)
    return stops - widths, widths


def numbers_at(rows: Array, starts: Array, widths: Array) -> Array:
    """The numbers of every row, which all start at the same columns."""
    out = np.zeros((len(rows), len(starts)), np.uint64)
    for width in np.unique(widths).tolist():
        if width > 10:
            raise Malformed
        chosen = np.flatnonzero(widths == width)
        number = np.zeros((len(rows), len(chosen)), np.uint64)
        for i in range(width):
            number |= (rows[:, starts[chosen] + i] & 0x7F).astype(np.uint64) << np.uint64(7 * i)
        out[:, chosen] = number
    return out.view(np.int64)
