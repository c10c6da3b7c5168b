"""Parts of tensors in checkpoints: how they are written in specs, in messages and in keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorfleet.base import errors

if TYPE_CHECKING:
    from tensorfleet.base.protos import TensorSliceProto

_FULL = -1


@dataclass(frozen=True)
class TensorSlice:
    """A part of a tensor: a start and a length for each axis; length -1 stands for the whole axis."""

    starts: tuple[int, ...]
    lengths: tuple[int, ...]

    @classmethod
    def whole(cls, rank: int) -> TensorSlice:
        """All of a tensor."""
        return cls((0,) * rank, (_FULL,) * rank)

    @classmethod
    def from_proto(cls, proto: TensorSliceProto) -> TensorSlice:
        """The slice that a `TensorSliceProto` describes."""
        extents = [(e.start, e.length if e.HasField("length") else _FULL) for e in proto.extent]
        return cls(tuple(s for s, _ in extents), tuple(n for _, n in extents))

    def to_proto(self) -> TensorSliceProto:
        """The slice as a `TensorSliceProto`."""
        from tensorfleet.base.protos import TensorSliceProto

        proto = TensorSliceProto()
        for start, length in zip(self.starts, self.lengths, strict=True):
            extent = proto.extent.add()
            if length != _FULL:
                extent.start, extent.length = start, length
        return proto

    def bounds(self, shape: Sequence[int]) -> list[tuple[int, int]]:
        """Where it starts and ends along each axis of a tensor of that shape."""
        triples = zip(self.starts, self.lengths, shape, strict=True)
        return [(0, size) if n == _FULL else (s, s + n) for s, n, size in triples]

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of this part of a tensor of that shape."""
        return tuple(end - start for start, end in self.bounds(shape))

    def key(self, name: str) -> bytes:
        """The key under which this part of the named tensor is stored."""
        text = _escaped(name.encode())
        numbers = [n for pair in zip(self.starts, self.lengths, strict=True) for n in pair]
        return b"\0" + text + b"\0\x01" + _ordered(len(self.starts)) + b"".join(map(_ordered_signed, numbers))


def _escaped(text: bytes) -> bytes:
    return b"".join({0: b"\0\xff", 255: b"\xff\0"}.get(c, bytes([c])) for c in text)


def _ordered(value: int) -> bytes:
    """A natural number such that bytes compare as the numbers do: its length, then its bytes."""
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _ordered_signed(value: int) -> bytes:
    """The same for any integer: as many leading ones as there are bytes, then the number."""
    bits = (~value if value < 0 else value).bit_length() + 1
    size = (bits + 6) // 7
    header = ((1 << size) - 1) << (7 * size)
    mask = (1 << 8 * size) - 1
    return ((value & mask) ^ header).to_bytes(size, "big")


def parse_spec(spec: str) -> tuple[tuple[int, ...], TensorSlice]:
    """Reads "4 5 0,2:-": the shape of the whole tensor, then a start and length (or "-") for each axis."""
    try:
        *dims, extents = spec.strip().split(" ")
        shape = tuple(int(d) for d in dims)
        pairs = [(0, _FULL) if e == "-" else _pair(e) for e in extents.split(":")]
        if len(pairs) != len(shape):
            raise ValueError("as many extents as dimensions are needed")
        part = TensorSlice(tuple(s for s, _ in pairs), tuple(n for _, n in pairs))
        for (start, end), size in zip(part.bounds(shape), shape, strict=True):
            if not 0 <= start <= end <= size:
                raise ValueError(f"{start} to {end} does not lie inside a dimension of {size}")
    except ValueError as e:
        raise errors.invalid(
            f"Shape and slice spec '{spec}' is not of the form \"dim dim start,length:-\": {e}"
        ) from e
    return shape, part


def _pair(text: str) -> tuple[int, int]:
    start, length = text.split(",")
    return int(start), int(length)
