"""Messages and graphs with mistakes put into them, the same ones for the same seed."""

from __future__ import annotations

import dataclasses
import importlib
import json
import random
import socket
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import wire

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.message import Message

    from tensorfleet.base.protos import GraphDef
    from tensorfleet.base.types import Buffer

_NUMBERS = (0, 1, -1, 2, 7, 127, 128, 255, 256, 1 << 31, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63))


class Mutator:
    """Puts mistakes into bytes and messages; `seed` decides which."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def bytes(self, data: bytes) -> bytes:
        """The data with a few mistakes: bytes changed, put in, left out, repeated, or cut off."""
        r = self.random
        mutated = bytearray(data)
        for _ in range(r.randint(1, 4)):
            at = r.randrange(len(mutated) + 1)
            kind = r.randrange(6)
            if kind < 3 and at < len(mutated):
                mutated[at] = r.choice((r.randrange(256), mutated[at] ^ (1 << r.randrange(8)), 0, 255))
            elif kind == 3:
                mutated[at:at] = r.randbytes(r.randint(1, 8))
            elif kind == 4:
                del mutated[at : at + r.randint(1, 8)]
            else:
                end = min(at + r.randint(1, 32), len(mutated))
                mutated[end:end] = mutated[at:end]
        if r.random() < 0.2:
            del mutated[r.randrange(len(mutated) + 1) :]
        return bytes(mutated)

    def message(self, message: Message, depth: int = 0) -> None:
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

    def _repeated(self, message: Message, field: FieldDescriptor, values: Any, depth: int) -> None:
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

    def _set(self, put: Callable[[Any], object], value: Any) -> None:
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
    """A stand-in for a socket that keeps the sent bytes."""

    def __init__(self) -> None:
        self.data = bytearray()

    def sendall(self, data: Buffer) -> None:
        """Keeps the data."""
        self.data += bytes(data)

    def sendmsg(self, views: Iterable[Buffer]) -> int:
        """Keeps the data of all of them."""
        before = len(self.data)
        for view in views:
            self.data += bytes(view)
        return len(self.data) - before


# -- the messages of the cluster, from their table ----------------------------------------------------

# Values with which a server goes far: other fields are made from their types.
_SAMPLES: dict[str, Any] = {"session": "0" * 16, "create": True, "ops": ["c"], "targets": ["c"], "wire": ""}
_SAMPLES |= {"task": "/job:nobody/replica:0/task:0", "containers": ["nothing"]}
_LONG = 100_000
# In the place of any field: none of them fits every type, most fit none.
_WRONG: tuple[Any, ...] = (None, True, 0, -1, 1 << 64, 10**400, 1.5, "", "x", "x" * _LONG)
_WRONG += ([], [None], [[]], [-1], ["x"] * 1000, {}, {"x": None}, {"x": -1}, {"x": ["x"]})
_NOT_OBJECTS = (b"{", b"[]", b"null", b"7", b'"x"', b"\xff", b"[" * _LONG, b'{"x":' * _LONG)


def sample(message: type[messages.Message], full: bool = False) -> Any:
    """A good message; with `full`, one whose lists and optional fields have something in them."""
    return _sample_of(message, full)


def _sample_of(hint: Any, full: bool) -> Any:
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        said = {f.name: hints[f.name] for f in dataclasses.fields(hint) if full or _is_said(f)}
        values = {name: _SAMPLES.get(name, _sample_of(of, full)) for name, of in said.items()}
        return hint(**values)  # type: ignore[operator]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _sample_of(arguments[0], full)
    if origin is tuple:
        return tuple(_sample_of(a, full) for a in arguments)
    if origin is list:
        return [_sample_of(arguments[0], full)] if full else []
    if origin is dict:
        return {"c": _sample_of(arguments[1], full)} if full else {}
    return {bool: True, int: 1, str: "c:0", Any: 0}[hint]


def _is_said(field: dataclasses.Field[Any]) -> bool:
    has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    return not has_default or field.name in _SAMPLES


def tensors_of(message: messages.Message) -> list[np.ndarray]:
    """Tensors that may go along with a message."""
    if isinstance(message, messages.Register):
        nodes = np.frombuffer(graph_def(small=True).SerializeToString(), np.uint8)
        return [nodes, np.zeros(0, np.uint8), *[np.ones(2, np.float32)] * len(message.known)]
    count = message.carries()
    return [np.ones((3, 4), np.float32)] if count is None else [np.arange(5)] * count


def frame_of(kind: int, fields: bytes, tensors: list[np.ndarray], number: int = 0) -> bytes:
    """A frame as the one of that number on its connection."""
    tape = _Tape()
    channel = wire.Channel(tape)  # type: ignore[arg-type]
    channel.sent = number
    channel.send(kind, fields, tensors)
    return bytes(tape.data)


def frames(first: int = 0) -> list[bytes]:
    """Good frames of every message, each as the one of number `first` on its connection."""
    samples = [sample(message, full) for message in messages.ALL for full in (False, True)]
    frames_of_samples = [frame_of(one.kind, one.encode(), tensors_of(one), first) for one in samples]
    run = sample(messages.Run)
    return [*frames_of_samples, frame_of(run.kind, run.encode(), [np.array([b"a", b"bc"], object)], first)]


def read_all(frame: wire.Frame) -> None:
    """Reads a frame as each of the messages of its kind."""
    for message in messages.ALL:
        if message.kind == frame.kind:
            frame.read(message)


@dataclasses.dataclass(frozen=True)
class Mistake:
    """The fields of a message with something wrong in them."""

    message: type[messages.Message]
    what: str
    fields: bytes
    #: whether the decoder must refuse them; it may, otherwise
    refused: bool


def mistakes(message: type[messages.Message]) -> Iterator[Mistake]:
    """Each field of a message missing, of another type, too large, negative; and fields that there are not."""
    if message.layout is not None:
        yield from _packed_mistakes(message)
        return
    for data in _NOT_OBJECTS:
        yield Mistake(message, f"not an object: {data[:10]!r}", data, True)
    for full in (False, True):
        good = json.loads(sample(message, full).encode() or b"{}")
        for what, value in _changed(good, ""):
            fields = json.dumps(value).encode()
            yield Mistake(message, what, fields, not fits(message, value))


def _packed_mistakes(message: type[messages.Message]) -> Iterator[Mistake]:
    good = sample(message, full=True).encode()
    for size in (0, 1, len(good) - 1):
        yield Mistake(message, f"{size} bytes", good[:size], True)
    yield Mistake(message, "a byte more", good + b"\0", True)
    for at in range(len(good)):
        for byte in (0, 0x7F, 0x80, 0xFF):
            yield Mistake(message, f"byte {at} is {byte}", good[:at] + bytes([byte]) + good[at + 1 :], False)


def _changed(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Variants of a JSON value with one change each, and a description of the change."""
    inside: Any = ()
    if isinstance(value, dict):
        yield f"{where} has one more", {**value, "no such field": 1}
        for name in value:
            yield f"{where}.{name} is missing", {k: v for k, v in value.items() if k != name}
        inside = value.items()
    elif isinstance(value, list):
        yield f"{where} is shorter", value[:-1]
        yield f"{where} is longer", [*value, *value]
        inside = enumerate(value)
    for at, one in inside:
        for what, changed in _changed(one, f"{where}.{at}"):
            copy = value.copy()
            copy[at] = changed
            yield what, copy
    for wrong in _WRONG:
        yield f"{where} is {str(wrong)[:20]}", wrong


def fits(hint: Any, value: object) -> bool:
    """Whether a JSON value may be read as a type: said once more, in other words than the decoder's."""
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        fields = {f.name: f for f in dataclasses.fields(hint)}
        return (
            isinstance(value, dict)
            and all(name in fields and fits(hints[name], v) for name, v in value.items())
            and all(
                name in value or f.default is not f.default_factory  # both are MISSING where it is required
                for name, f in fields.items()
            )
        )
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(fits(a, value) for a in arguments)
    if origin is list:
        return isinstance(value, list) and all(fits(arguments[0], v) for v in value)
    if origin is tuple:
        return isinstance(value, list) and len(value) == len(arguments) and all(map(fits, arguments, value))
    if origin is dict:
        return isinstance(value, dict) and all(fits(arguments[1], v) for v in value.values())
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64
    return isinstance(value, hint)


# -- graphs and connections ---------------------------------------------------------------------------


def graph_def(small: bool = False) -> GraphDef:
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
    result: GraphDef = graph.as_graph_def()
    return result


def heard(data: bytes) -> Iterator[wire.Frame]:
    """The frames that a connection over which this came gives, until it ends or one makes no sense."""
    here, there = socket.socketpair()
    with here, there:
        here.settimeout(60)
        here.sendall(data)
        here.shutdown(socket.SHUT_WR)
        there.settimeout(60)
        channel = wire.Channel(there, largest=1 << 30)
        while True:
            yield channel.receive()
