"""Reads of variables of other tasks on this machine, without a message: from boards (runtime/shared_memory/server_reads.py)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tensorfleet.base import errors
from tensorfleet.cluster.messages import Board, BoardPlace
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.transport.peers import Peer
from tensorfleet.cluster.transport.tensor_bytes import layout_of, malformed
from tensorfleet.cluster.transport.traffic import SharedReads
from tensorfleet.passes.partition import Stage
from tensorfleet.runtime.resources import variable_name
from tensorfleet.runtime.shared_memory.server_reads import BoardReader, head_of

if TYPE_CHECKING:
    from tensorfleet.base.types import Array
    from tensorfleet.graph.operation import Tensor
    from tensorfleet.runtime.variable_versions import VariableVersions

# A stage is worth a board when it is asked for so often: a board costs two open files, and a copy per update.
_MIN_REQUESTS = 4
_REQUESTS_BEFORE_RETRY = 1000  # for a stage whose task could give no board
_READS = {"Variable", "VariableV2", "VarHandleOp", "ReadVariableOp", "Identity", "NoOp"}


def is_plain(stage: Stage) -> bool:
    """Whether all that a stage does is to read variables."""
    return bool(stage.outputs) and not stage.inputs and all(op.type in _READS for op in stage.ops)


def variable_names(values: Sequence[Tensor]) -> list[str]:
    """The variable that each of the values of a plain stage is of, by the name that its server has for it."""
    result = []
    for value in values:
        op = value.op
        while op._inputs:
            op = op._inputs[0].op
        result.append(variable_name(op))
    return result


class SharedMemoryRead:
    """A stage that only reads variables of another task: asked for at first, read from a board later."""

    def __init__(self, at: Peer, number: int, names: Sequence[str]) -> None:
        """`names` are those of the variables that it gives, in this order."""
        self._at = at
        self._number = number
        self._names = names
        self._asked = 0
        self._reader: BoardReader | None = None
        #: of some variables: the place on the board, the number, and the version when the board was put up
        self._versions: list[tuple[int, int, int]] = []
        #: which of the connections to the task have ended since: with each of them the session may have
        self._times_lost = 0
        self._reads = SharedReads()

    def read(
        self, session: str, deadline: float | None, versions: VariableVersions | None = None
    ) -> list[Array] | None:
        """What the stage reads now; None when the task has to be asked, who knows what is wrong.

        Adds the versions of the variables to `versions`.
        """
        reader, at = self._reader, self._at
        if reader is None:
            self._asked += 1
            if self._asked < _MIN_REQUESTS:
                return None
            reader = self._find(session, deadline)
        if reader is None or not at.is_open():  # it is gone, or others use all connections to it
            return None
        values = None
        if self._times_lost == at.times_lost:
            values = reader.read() if versions is None else self._read_with_versions(reader, versions)
        if values is None:
            self._reader, self._asked = None, 0
        else:
            self._reads.count += 1
        return values

    def _read_with_versions(self, reader: BoardReader, versions: VariableVersions) -> list[Array] | None:
        counts: list[np.ndarray] = []
        values = reader.read(counts)
        if values is not None:
            (now,) = counts
            versions.add([(number, first + int(now[place]) // 2) for place, number, first in self._versions])
        return values

    def _find(self, session: str, deadline: float | None) -> BoardReader | None:
        with contextlib.suppress(
            errors.OpError
        ):  # the request for the stage, which comes next, raises it again
            self._times_lost = self._at.times_lost
            self._reader, self._versions = self._at.call_for(Board(session, self._number), _reader, deadline)
        if self._reader is not None:
            sizes = self._reader.value_bytes
            self._reads = self._at.reads_of(list(zip(self._names, sizes, strict=True)))
        else:
            self._asked = -_REQUESTS_BEFORE_RETRY
        return self._reader


def _reader(
    channel: wire.Channel, frame: wire.Frame
) -> tuple[BoardReader | None, list[tuple[int, int, int]]]:
    """The board that an answer tells of, if there is one, with the numbers and the first versions of its variables."""
    place = frame.read(BoardPlace)
    size, count = place.size, place.count
    if size is None or count is None:
        if size is None and count is None:
            return None, []
        raise malformed("a board without its size")
    layout, total = layout_of(frame.tensors[0].tobytes(), count)
    places = [(dtype, shape, start) for dtype, shape, start, _ in layout if dtype is not None]
    if size != head_of(count) + total or len(places) < count:
        raise malformed("a board of another size than its values")
    if any(at >= count for at, *_ in place.versions):
        raise malformed("a board with the version of a value that it does not have")
    return BoardReader(channel.mapped(size), places), place.versions
