"""Telling a client where in shared memory the variables are that it reads again and again."""

from __future__ import annotations

import numpy as np

from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.transport.tensor_bytes import describe
from tensorfleet.cluster.worker.worker import Worker


def show_board(worker: Worker, channel: wire.Channel, request: messages.Board) -> None:
    """Tells the client of a board with the variables that a stage reads, if there is one."""
    if worker.replica is not None:
        worker.replica.need()
    board = worker.board(request.session, request.stage) if channel.shares_memory else None
    descriptor = board.opened() if board is not None else None
    if board is None or descriptor is None:
        channel.say(messages.BoardPlace())
        return
    blob = describe([np.asarray(v) for v in board.values])[0]
    watched = worker.session(request.session).engine.watched.numbers()
    versions = [entry for entry in board.versions if entry[1] in watched]
    place = messages.BoardPlace(board.size, len(board.values), versions)
    channel.say(place, [np.frombuffer(blob, np.uint8)], [descriptor])
