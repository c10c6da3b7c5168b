"""Which sizes of a segment's inputs change from run to run, and the few sizes they are padded to.

A length that is another one in each step (of sentences, of a last batch) would need a program for each value it has.
Rounded up, all values up to the next of a few sizes share one program (decision 28). Sizes that are always in one
proportion, as the words of a batch are to the rows of its logits, are one length here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from tensorfleet.base.types import Array, Dims

#: an input and one of its dimensions
_Place: TypeAlias = tuple[int, int]

# A length is rounded up by less than an eighth of the next power of two: lengths from 9 to 1,024 by 8 % on average, with
# 28 sizes. Half as many sizes pad by 17 %, twice as many by 4 %, and each size is a program to compile.
_SIZES_PER_DOUBLING = 4
# Shorter lengths have a program each: a dimension of one broadcasts, and so few programs are soon made.
_MAX_EXACT_LENGTH = 2 * _SIZES_PER_DOUBLING


def rounded(length: int) -> int:
    """The size that a length is padded to."""
    if length <= _MAX_EXACT_LENGTH:
        return length
    step = _step(length)
    return -(-length // step) * step


def _step(length: int) -> int:
    """The distance of the sizes around a length."""
    return max((1 << (length - 1).bit_length()) // (2 * _SIZES_PER_DOUBLING), 1)


@dataclass(frozen=True)
class Bucket:
    """The sizes of one padded program, one of each length: the size itself, and another that it stands for."""

    sizes: tuple[int, ...]
    probes: tuple[int, ...]

    @property
    def pads(self) -> bool:
        """Whether any length could be padded in it."""
        return self.sizes != self.probes


class PaddedSizes:
    """The lengths that the shapes of a segment's inputs depend on."""

    def __init__(self, places: list[dict[_Place, int]]) -> None:
        #: of each length the places that have it, and how many times it they are
        self._places = places

    @classmethod
    def learned(cls, signatures: Sequence[Sequence[Dims]]) -> PaddedSizes | None:
        """The lengths behind some observed shapes; None if inputs also change their rank, or nothing changes."""
        ranks = {tuple(map(len, shapes)) for shapes in signatures}
        if len(ranks) != 1:
            return None
        ties: dict[tuple[Fraction, ...], dict[_Place, list[int]]] = {}
        for i, rank in enumerate(ranks.pop()):
            for d in range(rank):
                seen = [shapes[i][d] for shapes in signatures]
                if min(seen) != max(seen):
                    if min(seen) < 1:
                        return None
                    proportion = tuple(Fraction(size, seen[0]) for size in seen)
                    ties.setdefault(proportion, {})[i, d] = seen
        places = []
        for tied in ties.values():
            unit = min(seen[0] for seen in tied.values())
            if any(seen[0] % unit for seen in tied.values()):
                return None
            places.append({place: seen[0] // unit for place, seen in tied.items()})
        return cls(places) if places else None

    def lengths(self, shapes: Sequence[Dims | None]) -> tuple[int, ...] | None:
        """The lengths of these shapes; None if they do not fit together as all shapes before did."""
        lengths = []
        for tied in self._places:
            sizes = set()
            for (i, d), factor in tied.items():
                shape = shapes[i]
                if shape is None or len(shape) <= d or shape[d] % factor:
                    return None
                sizes.add(shape[d] // factor)
            if len(sizes) != 1 or not min(sizes):
                return None
            lengths.append(sizes.pop())
        return tuple(lengths)

    def bucket(self, lengths: tuple[int, ...]) -> Bucket:
        """The sizes that these lengths are padded to."""
        sizes = tuple(map(rounded, lengths))
        probes: list[int] = []
        for size in sizes:
            # The shortest length of the bucket, so that what holds at both ends of it holds between. Another for each
            # length: a dimension is known by how it differs between the two.
            probe = size if size <= _MAX_EXACT_LENGTH else size - _step(size) + 1
            while probe < size and (size, probe) in zip(sizes, probes, strict=False):
                probe += 1
            probes.append(probe)
        return Bucket(sizes, tuple(probes))

    def shapes(self, shapes: Sequence[Dims | None], sizes: Sequence[int]) -> list[Any]:
        """The same shapes with other lengths."""
        padded = [None if shape is None else list(shape) for shape in shapes]
        for tied, size in zip(self._places, sizes, strict=True):
            for (i, d), factor in tied.items():
                row = padded[i]
                assert row is not None
                row[d] = size * factor
        return [None if shape is None else tuple(shape) for shape in padded]

    def padded(self, inputs: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """The inputs with zeros behind them, as far as they are shorter."""
        wanted = self.shapes([None if x is None else x.shape for x in inputs], sizes)
        return [
            x if x is None or x.shape == s else _lengthened(x, s) for x, s in zip(inputs, wanted, strict=True)
        ]


def _lengthened(value: Any, shape: Dims) -> Array:
    value = np.asarray(value)
    result = np.zeros(shape, value.dtype)
    result[tuple(map(slice, value.shape))] = value
    return result
