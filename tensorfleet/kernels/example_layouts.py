"""Many serialized Examples taken apart at once.

Records written by one program mostly have one layout: the same features in the same order with the same number
of values. The first record of each length is scanned in Python; all others that agree with it in every byte that
is not a value are then taken apart together, by columns of a matrix of bytes. Where lengths differ from record to record,
the features still come in the same order, and all records are walked through in step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.kernels.example_walk import MIN_WALKED_RECORDS, Walked, walk
from tensorfleet.kernels.example_wire import (
    BYTES,
    FLOATS,
    INTS,
    MISSING,
    Feature,
    Malformed,
    number_places,
    numbers_at,
    scan,
)
from tensorfleet.kernels.packed_strings import Strings
from tensorfleet.kernels.string_buffers import ZEROS, Buffer, by_length, lengths_of, strings_of


class Layout:
    """Where the values are in one record, and in all others that look like it."""

    __slots__ = ("_bits", "_columns", "_expected", "_ints", "data", "features")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.features = scan(data)
        self._columns: Any = None

    def _prepare(self) -> None:
        """Which bytes (or bits of them) another record must share."""
        mask = np.full(len(self.data), 0xFF, np.uint8)
        for kind, spans in self.features.values():
            for a, b in spans:
                mask[a:b] = 0x80 if kind == INTS else 0
        self._columns = np.flatnonzero(mask)
        self._bits = mask[self._columns]
        self._expected = np.frombuffer(self.data, np.uint8)[self._columns] & self._bits
        self._ints: dict[bytes, tuple[Array, Array]] = {}

    def matches(self, rows: Array) -> Array:
        """Which rows, each the bytes of a record as long as this one, have this layout."""
        if self._columns is None:
            self._prepare()
        result: Array = ((rows[:, self._columns] & self._bits) == self._expected).all(axis=1)
        return result

    def kind(self, key: bytes) -> int:
        """Which kind of values a feature has; MISSING when there is none."""
        return self.features.get(key, (MISSING,))[0]

    def take(self, key: bytes, rows: Array) -> Array:
        """The values of a feature in records of this layout, one row each. `rows` are their bytes."""
        kind, spans = self.features[key]
        if kind == BYTES:
            result = np.empty((len(rows), len(spans)), object)
            for i, (a, b) in enumerate(spans):
                result[:, i] = strings_of(rows[:, a:b])
            return result
        if len(spans) == 1:
            ((a, b),) = spans
            part = rows[:, a:b]
        else:
            part = np.concatenate([rows[:, a:b] for a, b in spans] or [rows[:, :0]], axis=1)
        if kind == FLOATS:
            return np.ascontiguousarray(part).view("<f4")
        known = self._ints.get(key)
        if known is None:
            known = self._ints[key] = number_places(part[0])
        return numbers_at(part, *known)


class RecordGroup:
    """Records of one layout, and their positions in the batch."""

    __slots__ = ("layout", "positions", "rows")

    def __init__(self, positions: Array, layout: Layout, rows: Array) -> None:
        self.positions = positions
        self.layout = layout
        self.rows = rows

    def take(self, key: bytes) -> Array:
        """The values of a feature, one row per record."""
        return self.layout.take(key, self.rows)


# Fewer records of one length than this are not worth a matrix: of few records, and of many, of which there are many lengths.
_WORTH_IT, _WORTH_IT_OF_MANY = 6, 16
_MOST_LENGTHS, _MOST_LAYOUTS = 512, 4
_known: dict[int, list[Layout]] = {}


class Sorted:
    """Serialized Examples: in groups of one layout, walked through in step, and the rest one by one.

    The first record that is no Example raises `Malformed` with its position and itself.
    """

    def __init__(self, records: Strings | list[bytes]) -> None:
        self.groups: list[RecordGroup] = []
        self.walked: list[Walked] = []
        rest = np.arange(len(records))
        if len(records) >= _WORTH_IT:
            buffer = records.buffer if isinstance(records, Strings) else _joined(records)
            self.walked, rest = walk(buffer, self._grouped(buffer))
        #: (position, record, features) each
        self.alone: list[tuple[int, bytes, dict[bytes, Feature]]] = []
        for i in rest.tolist():
            record = records.buffer.text(i) if isinstance(records, Strings) else records[i]
            try:
                self.alone.append((i, record, scan(record)))
            except Malformed:
                raise Malformed(i, record) from None

    def _grouped(self, buffer: Buffer) -> Array:
        """Finds the groups; the positions of records that are in none, in order."""
        least = max(_WORTH_IT, min(len(buffer.lengths) // 8, _WORTH_IT_OF_MANY))
        ordered = np.sort(buffer.lengths)
        if not (ordered[least - 1 :] == ordered[: len(ordered) - least + 1]).any():
            return np.arange(len(ordered))
        groups = list(by_length(buffer.lengths))
        if sum(len(positions) for _, positions in groups if len(positions) < least) < MIN_WALKED_RECORDS:
            least = _WORTH_IT  # nobody would walk through those that are left
        rest = []
        for length, positions in groups:
            if len(positions) >= least and length:
                same = Buffer(buffer.data, buffer.starts[positions], buffer.lengths[positions])
                positions = _alike(length, positions, same.rows(length), self.groups)
            rest.append(positions)
        return np.sort(np.concatenate(rest))


def _joined(records: list[bytes]) -> Buffer:
    lengths = lengths_of(records)
    return Buffer(b"".join([*records, ZEROS]), np.cumsum(lengths) - lengths, lengths)


def _alike(length: int, positions: Array, rows: Array, groups: list[RecordGroup]) -> Array:
    """Adds the groups among records of one length; the positions of those in none."""
    known = _known.get(length, [])
    tried = new = 0
    while len(rows) >= _WORTH_IT:
        if tried < len(known):
            layout = known[tried]
        elif new < _MOST_LAYOUTS:
            try:
                layout = Layout(rows[0].tobytes())
            except Malformed:
                break
            _remember(length, layout)
            new += 1
        else:
            break
        tried += 1
        same = layout.matches(rows)
        if same.all():
            groups.append(RecordGroup(positions, layout, rows))
            return positions[:0]
        if same.any():
            groups.append(RecordGroup(positions[same], layout, rows[same]))
            positions, rows = positions[~same], rows[~same]
    return positions


def _remember(length: int, layout: Layout) -> None:
    if len(_known) >= _MOST_LENGTHS:
        _known.clear()
    _known[length] = [layout, *_known.get(length, [])][:_MOST_LAYOUTS]
