"""How arrays are divided among servers: by their bytes, large ones in pieces."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tensorfleet.base.types import Dims

# Pieces smaller than this cost more in messages than they save.
_MIN_PIECE_BYTES = 1 << 16


@dataclass(frozen=True)
class Piece:
    """Rows `begin` to `end` of one array, or all of it, and the server that has them."""

    leaf: int
    begin: int
    end: int
    server: int
    #: whether the array has other pieces
    is_part: bool


def divide(
    shapes: Sequence[Dims], sizes: Sequence[int], servers: int, splittable: Collection[int]
) -> list[Piece]:
    """The pieces of arrays of these shapes and bytes, in the order of the arrays.

    An array with more bytes than a server's share is split along its first dimension if it is `splittable`. The
    largest piece goes first, to the server with the least bytes.
    """
    share = math.ceil(sum(sizes) / servers)
    pieces = [
        (leaf, begin, end, count > 1)
        for leaf, shape in enumerate(shapes)
        for count in [_pieces(shape, sizes[leaf], share, servers) if leaf in splittable else 1]
        for begin, end in _ranges(shape[0] if shape else 1, count)
    ]

    def weight(piece: tuple[int, int, int, bool]) -> float:
        leaf, begin, end, _ = piece
        shape = shapes[leaf]
        return sizes[leaf] * (end - begin) / max(shape[0], 1) if shape else sizes[leaf]

    loads = [0.0] * servers
    chosen = [0] * len(pieces)
    for i in sorted(range(len(pieces)), key=lambda i: (-weight(pieces[i]), i)):
        chosen[i] = min(range(servers), key=lambda s: (loads[s], s))
        loads[chosen[i]] += weight(pieces[i])
    return [
        Piece(leaf, begin, end, server, is_part)
        for (leaf, begin, end, is_part), server in zip(pieces, chosen, strict=True)
    ]


def _pieces(shape: Dims, size: int, share: int, servers: int) -> int:
    """Into how many pieces an array is split."""
    if not shape or size <= share or size < 2 * _MIN_PIECE_BYTES:
        return 1
    return max(1, min(servers, shape[0], size // _MIN_PIECE_BYTES))


def _ranges(rows: int, count: int) -> list[tuple[int, int]]:
    """Ranges of nearly the same length."""
    bounds = [rows * i // count for i in range(count + 1)]
    return list(itertools.pairwise(bounds))
