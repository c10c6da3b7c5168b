"""Answers questions about a task that has no `tf.train.Server`: a script that runs alone, an evaluator.

It authenticates as a server does and knows three requests: Ping, Describe and Inspect. Nothing here is imported before
somebody asks (cli/scripts/bootstrap.py waits for that).
"""

from __future__ import annotations

import contextlib
import json
import socket

import numpy as np

from tensorfleet.base import errors, settings
from tensorfleet.cluster import messages
from tensorfleet.cluster.inspection import own_task, topics
from tensorfleet.cluster.transport import tls, wire
from tensorfleet.cluster.transport.connection import is_on_this_machine
from tensorfleet.cluster.transport.listener import Listener
from tensorfleet.cluster.transport.token import token

_MAX_FRAME_BYTES = 1 << 20  # of a question


def serve(sock: socket.socket) -> Listener:
    """Answers those who connect to a listening socket, in threads of its own."""
    label = own_task.label(None)
    listener = Listener([sock], token(), _welcome, _serve, _MAX_FRAME_BYTES, tls.for_server(), label)
    listener.start()
    return listener


def _welcome() -> messages.Welcome:
    label = own_task.label(None)
    job, _, index = label.rpartition("/")
    return messages.Welcome(own_task.incarnation(None), label, job, int(index), {})


def _serve(channel: wire.Channel, hello: messages.Hello) -> None:
    """Answers one client until it leaves."""
    with contextlib.suppress(OSError, errors.OpError):  # the other side has gone, or talks nonsense
        while True:
            frame = channel.receive()
            try:
                _answer(channel, hello.client, frame)
            except ConnectionError:
                break
            except Exception as error:
                channel.say(_failed(error))
    channel.close()


def _answer(channel: wire.Channel, client: str, frame: wire.Frame) -> None:
    if frame.kind == messages.INSPECT:
        request = frame.read(messages.Inspect)
        here = is_on_this_machine(channel.sock)
        report = topics.answer(None, client, request.topic, request.options, here)
        text = np.frombuffer(json.dumps(report.content).encode(), np.uint8)
        channel.say(messages.Inspected(), [text, *report.arrays])
    elif frame.kind == messages.PING:
        channel.say(messages.Done())
    elif frame.kind == messages.DESCRIBE:
        channel.say(messages.Description([], False, {}))
    else:
        raise errors.UnimplementedError(
            None,
            None,
            f"{own_task.label(None)} has no tf.train.Server: it only answers questions about itself "
            f"({settings.INSPECT.name}). Make a session on a server of a cluster.",
        )


def _failed(error: Exception) -> messages.Failed:
    known = error if isinstance(error, errors.OpError) else errors.about(None, error)
    return messages.Failed(known.error_code, known.message)
