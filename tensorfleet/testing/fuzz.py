"""Messages and graphs with mistakes put into them, the same ones for the same seed."""

from __future__ import annotations

import importlib
import random
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np

_NUMBERS = (0, 1, -1, 2, 7, 127, 128, 255, 256, 1 << 31, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63))


class Mutator:
    """Puts mistakes into bytes and messages; `seed` decides which."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def bytes(self, data: bytes) -> bytes:
        """The data with a few mistakes: bytes changed, put in, left out, repeated, or cut off."""
        r = self.random
        made = bytearray(data)
        for _ in range(r.randint(1, 4)):
            at = r.randrange(len(made) + 1)
            kind = r.randrange(6)
            if kind < 3 and at < len(made):
                made[at] = r.choice((r.randrange(256), made[at] ^ (1 << r.randrange(8)), 0, 255))
            elif kind == 3:
                made[at:at] = r.randbytes(r.randint(1, 8))
            elif kind == 4:
                del made[at : at + r.randint(1, 8)]
            else:
                end = min(at + r.randint(1, 32), len(made))
                made[end:end] = made[at:end]
        if r.random() < 0.2:
            del made[r.randrange(len(made) + 1) :]
        return bytes(made)

    def message(self, message: Any, depth: int = 0) -> None:
        """Changes one field of a protocol message, or of one inside it."""
        r = self.random
        fields = [f for f, _ in message.ListFields()]
        if not fields:
            return
        field = r.choice(fields)
        value = getattr(message, field.name)
        if hasattr(value, "extend") or hasattr(value, "keys"):  # a list or a map
            self._repeated(message, field, value, depth)
        elif field.type == field.TYPE_MESSAGE:
            message.ClearField(field.name) if r.random() < 0.1 else self.message(value, depth + 1)
        else:
            self._set(lambda v: setattr(message, field.name, v), value)

    def _repeated(self, message: Any, field: Any, values: Any, depth: int) -> None:
        r = self.random
        if hasattr(values, "keys"):
            key = r.choice(sorted(values))
            if r.random() < 0.2 or not hasattr(values[key], "ListFields"):
                del values[key]
            else:
                self.message(values[key], depth + 1)
            return
        at = r.randrange(len(values))
        kind = r.random()
        if kind < 0.1:
            del values[at]
        elif kind < 0.2:
            copy = values[at]
            values.add().CopyFrom(copy) if hasattr(copy, "CopyFrom") else values.append(copy)
        elif hasattr(values[at], "ListFields"):
            self.message(values[at], depth + 1)
        else:
            self._set(lambda v: values.__setitem__(at, v), values[at])

    def _set(self, put: Any, value: Any) -> None:
        r = self.random
        try:
            if isinstance(value, bool):
                put(not value)
            elif isinstance(value, int):
                put(r.choice((*_NUMBERS, value + 1, value - 1, r.randrange(64))))
            elif isinstance(value, float):
                put(r.choice((0.0, -1.0, float("nan"), float("inf"), 1e38)))
            elif isinstance(value, bytes):
                put(self.bytes(value))
            else:
                put(r.choice(("", "x", "../x", value + ":1", "^" + value, value[:-1], value * 3)))
        except (ValueError, TypeError):
            pass  # protobuf itself refuses it


class _Tape:
    """In the place of a socket: keeps what is sent."""

    def __init__(self) -> None:
        self.data = bytearray()

    def sendall(self, data: Any) -> None:
        """Keeps the data."""
        self.data += bytes(data)

    def sendmsg(self, views: Any) -> int:
        """Keeps the data of all of them."""
        before = len(self.data)
        for view in views:
            self.data += bytes(view)
        return len(self.data) - before


def frames(first: int = 0) -> list[bytes]:
    """Good frames of every kind, each as the one of number `first` on its connection."""
    from tensorfleet.cluster.master.step_driver import RUN_FIELDS
    from tensorfleet.cluster.transport import wire

    nodes = np.frombuffer(graph_def(small=True).SerializeToString(), np.uint8)
    nothing = np.zeros(0, np.uint8)
    stage: dict = {key: [] for key in ("given", "kept", "awaited", "reply", "keep", "push", "known", "thin")}
    stage |= {"id": 1, "ops": ["c"], "targets": ["c"], "wire": ""}
    told: list[tuple[int, Any, list]] = [
        (wire.RUN, RUN_FIELDS.pack(b"0" * 16, 1, 1, 1, 1000, False), [np.ones((3, 4), np.float32)]),
        (wire.RUN, RUN_FIELDS.pack(b"0" * 16, 1, 1, 1, 1000, False), [np.array([b"a", b"bc"], object)]),
        (
            wire.REGISTER,
            {"session": "0" * 16, "create": True, "known": [], "stages": [stage]},
            [nodes, nothing],
        ),
        (wire.PUSH, {"session": "0" * 16, "step": 1, "names": ["c:0"]}, [np.arange(5)]),
        (wire.CANCEL, {"session": "0" * 16, "step": 7, "reason": "why"}, []),
        (wire.CLOSE, {"session": "0" * 16}, []),
        (wire.RESET, {"containers": ["nothing"]}, []),
        (wire.DESCRIBE, {}, []),
        (wire.PING, {}, []),
        (wire.RETURN, {}, []),
        (wire.BOARD, {"session": "0" * 16, "stage": 1}, []),
        (wire.BYE, {"task": "/job:nobody/replica:0/task:0", "served": True}, []),
        (wire.STOP, {"task": "/job:nobody/replica:0/task:0"}, []),
        (wire.WELCOME, {"client": "somebody"}, []),
        (wire.OK, {}, [np.ones(3, np.int32)]),
        (wire.FAILED, {"code": 3, "message": "why", "op": "c"}, []),
    ]
    found = []
    for kind, fields, values in told:
        tape = _Tape()
        channel = wire.Channel(tape)  # type: ignore[arg-type]
        channel._sent = first
        if isinstance(fields, dict):
            channel.send_json(kind, values, **fields)
        else:
            channel.send(kind, fields, values)
        found.append(bytes(tape.data))
    return found


def graph_def(small: bool = False) -> Any:
    """A graph with something of everything: constants, variables, shapes, a queue; unless `small`, a branch and a loop."""
    tf: Any = importlib.import_module("tensorfleet")  # all its names are made at run time

    with tf.Graph().as_default() as graph:
        c = tf.constant([[1.0, 2.0], [3.0, 4.0]], name="c")
        v = tf.Variable(c, name="v")
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        parts = tf.split(tf.reshape(tf.matmul(x, v), [-1, 4]), 2, axis=1)
        q = tf.FIFOQueue(3, [tf.float32], shapes=[[2, 2]])
        tf.group(q.enqueue(c), tf.concat(parts, 0), name="all")
        if not small:
            i = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
            s = tf.cond(i > 1, lambda: tf.range(5), lambda: tf.zeros([3], tf.int32))
            y = tf.nn.relu(parts[0])[:, tf.newaxis, ::1] + tf.reduce_sum(tf.fill([2, 2], 0.5), axis=0)
            tf.pad(y, [[0, 1]] * 3)
            tf.string_join(["a", tf.as_string(tf.size(s))])
    return graph.as_graph_def()


def heard(data: bytes) -> Iterator[Any]:
    """The frames that a connection over which this came gives, until it ends or one makes no sense."""
    from tensorfleet.cluster.transport import wire

    here, there = socket.socketpair()
    with here, there:
        here.settimeout(60)
        here.sendall(data)
        here.shutdown(socket.SHUT_WR)
        there.settimeout(60)
        channel = wire.Channel(there, largest=1 << 30)
        while True:
            yield channel.receive()
