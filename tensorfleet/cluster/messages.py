"""Every message of the cluster: its fields, and how they become bytes and are read again.

A frame (transport/wire.py) carries the kind of the message, its fields as bytes, and tensors. RUN, which every step sends,
is packed; all others are JSON (transport/json_fields.py), which the decoders check field by field: one that is missing,
unknown, or of another type makes the message malformed. Decisions only: nothing here sends anything.

A new message is a kind, a dataclass, and a line in `REQUESTS` or `ANSWERS`. The fuzzer (testing/fuzz.py) takes what it
sends from those two.
"""

from __future__ import annotations

import dataclasses
import json
import struct
import typing
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from tensorfleet.cluster.stage_spec import StageSpec
from tensorfleet.cluster.transport import json_fields
from tensorfleet.cluster.transport.tensor_bytes import malformed

#: of the handshake, of the frames, and of the messages: any change of a kind or a field that the other side must know of
VERSION = 4

KINDS = range(21)
WELCOME, OK, FAILED, PING, REGISTER, RUN, PUSH, CANCEL, CLOSE, RESET = range(10)
BYE, DESCRIBE, STOP, RETURN, BOARD, INSPECT, MOVED, LEAD, REPLICATE, STAND_DOWN, READ_VARIABLES = range(
    10, 21
)

#: the bits of a step's number that are the number of the whole step: the iterations of its loops are steps of their own
WHOLE_STEP = (1 << 40) - 1
#: how a stage is run: its events are recorded; it goes on by itself for a while; every operation runs by itself; its
#: answer has the versions of variables
TRACED, AGAIN, BY_OP, VERSIONS = 1, 2, 4, 8
#: which part of a copy of its state a primary sends to a new standby; a commit that wants no answer; no state, as the
#: standby has the same already
BEGINS, ENDS, QUIET, KEEPS = 1, 2, 4, 8
#: how the error begins that a server of a durable task answers with when another server leads the task
GIVEN_UP = "This server was given up"
#: how the name of a client ends that is the guard of durable tasks
GUARD = ".guard"
#: the fields of a message that says nothing
NOTHING = b""

_Self = TypeVar("_Self", bound="Message")


class Message:
    """The fields of one kind of message."""

    __slots__ = ()
    kind: ClassVar[int]
    #: how the fields of a packed message lie; None for JSON
    layout: ClassVar[struct.Struct | None] = None

    def encode(self) -> bytes:
        """The fields as bytes."""
        return json_fields.encode(self)

    @classmethod
    def decode(cls: type[_Self], fields: bytes) -> _Self:
        """The message with these fields. Raises InvalidArgumentError when they are malformed."""
        return json_fields.decode(cls, fields)

    def carries(self) -> int | None:
        """How many tensors go along; None when only those who use them know."""
        return 0


class Answer(Message):
    """What a task says to a request."""

    __slots__ = ()
    kind = OK


_Answer = TypeVar("_Answer", bound=Answer)


class Request(Message, Generic[_Answer]):
    """What a task is asked to do, and with what it answers; any may be answered by `Failed`."""

    __slots__ = ()

    @classmethod
    def answer(cls) -> type[_Answer]:
        """The answer when nothing fails."""
        answer: type[_Answer] = typing.get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]
        return answer


# -- the first frame of each side ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Welcome(Answer):
    """Who the server is, and the cluster it is part of."""

    kind = WELCOME
    #: a number for the life of the task: one started again has another
    incarnation: int
    task: str
    job: str
    index: int
    #: by job the addresses of its tasks; by number, where numbers are left out
    cluster: dict[str, list[str] | dict[str, str]]
    #: of a durable task all places where it may be, as addresses; no other task has any
    places: list[str] = dataclasses.field(default_factory=list)
    #: of a durable task the number of the decision by which this server leads it; 0 for one that does not, or not yet
    epoch: int = 0
    #: whether this server is a standby, or was given up: nobody but the guard and the primary has business with it
    stands_by: bool = False
    #: of a durable task a number for its state: with another one, all servers that had it are lost
    lineage: int = 0


@dataclass(frozen=True, slots=True)
class Hello(Request[Welcome]):
    """Who the client is. It is forgotten with the connection that it calls `control`, which carries pings only."""

    kind = WELCOME
    client: str
    control: bool = False
    #: the tasks whose servers the client has
    tasks: list[str] = dataclasses.field(default_factory=list)


# -- answers ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failed(Answer):
    """The error that a request ended with, and the operation it is about."""

    kind = FAILED
    code: int
    message: str
    op: str | None = None


@dataclass(frozen=True, slots=True)
class Done(Answer):
    """It is done, and there is nothing to say."""


@dataclass(frozen=True, slots=True)
class Ran(Answer):
    """A stage was run. Its results go along; so do its events, if it was traced."""

    #: device, name, label, began, ended, thread, bytes of each result
    events: list[tuple[str, str, str, int, int, int, list[int]]] | None = None
    #: of the variables that it read and updated, their numbers and the versions before that, if these were asked for
    read: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    updated: list[tuple[int, int]] = dataclasses.field(default_factory=list)

    def carries(self) -> None:
        """Whoever asked knows how many values the stage gives."""


@dataclass(frozen=True, slots=True)
class Description(Answer):
    """What a task is at the moment."""

    devices: list[str]
    #: whether its program does nothing but serve
    joined: bool
    #: how many gradients were dropped as stale, by who computed them
    dropped: dict[str, int]


@dataclass(frozen=True, slots=True)
class BoardPlace(Answer):
    """Shared memory whose descriptor comes along, with the descriptors of the values in it as a tensor; or nothing."""

    size: int | None = None
    count: int | None = None
    #: of some variables: the place, the number of the variable, and its version when the count of that place was 0
    versions: list[tuple[int, int, int]] = dataclasses.field(default_factory=list)

    def carries(self) -> int:
        """The descriptors of the values."""
        return 0 if self.size is None else 1


@dataclass(frozen=True, slots=True)
class Led(Answer):
    """What a server of a durable task has made of a decision."""

    epoch: int
    #: how many commits it has, and how many bytes a copy of its state for a standby took
    commits: int
    copied_bytes: int = 0
    #: why a server has not taken over: it does not reach the one that has stood down, and was to have that as its standby
    without_standby: str = ""


@dataclass(frozen=True, slots=True)
class VariablesRead(Answer):
    """The values of variables, which go along, as they were after a commit."""

    number: int
    lineage: int
    #: whether a standby has answered
    stands_by: bool = False

    def carries(self) -> None:
        """Whoever asked knows how many variables there are."""


@dataclass(frozen=True, slots=True)
class Inspected(Answer):
    """What a task tells about itself: a JSON object goes along as bytes, then arrays."""

    def carries(self) -> None:
        """The topic knows how many arrays belong to it."""


# -- what is asked of the task itself -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ping(Request[Done]):
    """Asks whether the task is alive."""

    kind = PING


@dataclass(frozen=True, slots=True)
class Describe(Request[Description]):
    """Asks what the task is at the moment."""

    kind = DESCRIBE


@dataclass(frozen=True, slots=True)
class Reset(Request[Done]):
    """Free some containers, or all; at a master also the sessions that were made on its target."""

    kind = RESET
    containers: list[str] | None = None
    master: bool = False


@dataclass(frozen=True, slots=True)
class Bye(Request[Done]):
    """A task has ended: its work is finished, or it only served and was told to stop."""

    kind = BYE
    task: str
    served: bool = False


@dataclass(frozen=True, slots=True)
class Stop(Request[Done]):
    """End the server of this task, if it is this one."""

    kind = STOP
    task: str


@dataclass(frozen=True, slots=True)
class Inspect(Request[Inspected]):
    """Asks the task about itself; inspection/topics.py has the topics."""

    kind = INSPECT
    topic: str
    #: a JSON object
    options: str = ""


@dataclass(frozen=True, slots=True)
class Moved(Request[Done]):
    """Tells where tasks are now whose address in the ClusterSpec has become another one."""

    kind = MOVED
    #: by the address in the ClusterSpec: the one to connect to
    addresses: dict[str, str]


@dataclass(frozen=True, slots=True)
class Lead(Request[Led]):
    """The guard's decision about a durable task: this server leads it in an epoch, with a standby or alone.

    A standby takes over: alone, or with the server as its standby that led before and has stood down. A primary goes on
    alone, or copies its state to a new standby and answers when that has all of it.
    """

    kind = LEAD
    task: str
    epoch: int
    #: the address of the standby; nothing for none
    standby: str = ""
    #: all places where the task may be, as addresses
    places: list[str] = dataclasses.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StandDown(Request[Led]):
    """The guard asks the primary of a durable task to finish its commit and become the standby of its standby.

    It answers when it leads no more. Nobody leads then until the guard says so, and both servers have all of the state.
    """

    kind = STAND_DOWN
    task: str
    epoch: int


@dataclass(slots=True)
class Replicate(Request[Done]):
    """What changed on the primary of a durable task, for its standby. The arrays of the changes go along."""

    kind = REPLICATE
    layout = struct.Struct("<QQB")
    epoch: int
    #: of the commit; a copy of the state that a new standby gets has that of the last commit in it
    number: int
    #: BEGINS, ENDS: the first and the last part of a copy of the state; QUIET; KEEPS
    part: int
    #: as cluster/durability/changes.py reads them
    changes: list[Any]

    def encode(self) -> bytes:
        """The fields as bytes."""
        said = json.dumps(self.changes, separators=(",", ":")).encode()
        return self.layout.pack(self.epoch, self.number, self.part) + said

    @classmethod
    def decode(cls, fields: bytes) -> Replicate:
        """The message with these fields. Raises InvalidArgumentError when they are malformed."""
        if len(fields) < cls.layout.size:
            raise malformed(f"Replicate has {len(fields)} bytes, not {cls.layout.size} or more")
        epoch, number, part = cls.layout.unpack_from(fields)
        try:
            changes = json.loads(fields[cls.layout.size :])
        except ValueError:
            changes = None
        if part > BEGINS | ENDS | QUIET | KEEPS or not isinstance(changes, list):
            raise malformed("Replicate has no such part, or no list of changes")
        return cls(epoch, number, part, changes)

    def carries(self) -> None:
        """The changes know their arrays."""


@dataclass(frozen=True, slots=True)
class ReadVariables(Request[VariablesRead]):
    """Asks a server of a durable task, also its standby, for variables: as of this commit of a state, or later."""

    kind = READ_VARIABLES
    task: str
    #: the container and the name of each
    names: list[tuple[str, str]]
    #: 0 for any state
    lineage: int = 0
    at_least: int = 0


# -- sessions and their stages ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Register(Request[Done]):
    """Operations and stages for a session. Along go a GraphDef, for a new session its ConfigProto, and constants."""

    kind = REGISTER
    session: str
    #: the names of the constants
    known: list[str]
    stages: list[StageSpec]
    create: bool = False
    #: what the session calls this task, and the task that it was made on
    task: str = ""
    owner: str = ""

    def carries(self) -> int:
        """Two messages of protobuf, then the constants."""
        return 2 + len(self.known)


@dataclass(slots=True)  # not frozen: that would make it three times slower to make, and every step makes two
class Run(Request[Ran]):
    """Run a stage of a step with the values that go along."""

    kind = RUN
    layout = struct.Struct("<16sQIIIBQ")
    session: str
    step: int
    stage: int
    #: how many stages of the step this task has
    total: int
    #: milliseconds until the step's deadline; 0 for none
    timeout: int
    #: TRACED, AGAIN, BY_OP, VERSIONS
    how: int = 0
    #: the first step of the session that is not over: nobody asks for the results of earlier ones again
    oldest: int = 0

    def encode(self) -> bytes:
        """The fields as bytes."""
        return self.pack(self.session, self.step, self.stage, self.total, self.timeout, self.how, self.oldest)

    @classmethod
    def decode(cls, fields: bytes) -> Run:
        """The message with these fields. Raises InvalidArgumentError when they are malformed."""
        return cls(*cls.unpack(fields))

    # Every step sends and reads one: these two do without the object, which takes longer to make than all the rest.

    @staticmethod
    def pack(
        session: str, step: int, stage: int, total: int, timeout: int, how: int, oldest: int = 0
    ) -> bytes:
        """The fields of a message, in their order, as bytes."""
        return _PACK_RUN(session.encode(), step, stage, total, timeout, how, oldest)

    @staticmethod
    def unpack(fields: bytes) -> tuple[str, int, int, int, int, int, int]:
        """The fields of a message, in their order. Raises InvalidArgumentError when they are malformed."""
        if len(fields) != _RUN_BYTES:
            raise malformed(f"Run has {len(fields)} bytes, not {_RUN_BYTES}")
        session, step, stage, total, timeout, how, oldest = _UNPACK_RUN(fields)
        if how > _MAX_HOW or not session.isascii():
            raise malformed("Run has no such session, or no such way to run it")
        return session.decode(), step, stage, total, timeout, how, oldest

    def carries(self) -> None:
        """The stage knows how many values it takes."""


_PACK_RUN, _UNPACK_RUN, _RUN_BYTES = Run.layout.pack, Run.layout.unpack, Run.layout.size
_MAX_HOW = TRACED | AGAIN | BY_OP | VERSIONS


@dataclass(frozen=True, slots=True)
class Push(Request[Done]):
    """Values for a stage of a step, from another task."""

    kind = PUSH
    session: str
    step: int
    names: list[str]

    def carries(self) -> int:
        """A value for each name."""
        return len(self.names)


@dataclass(frozen=True, slots=True)
class Cancel(Request[Done]):
    """A step is over, or was given up: what waits for it wakes up."""

    kind = CANCEL
    session: str
    step: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Close(Request[Done]):
    """A session is closed; `finished` when it has done its work."""

    kind = CLOSE
    session: str
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Return(Request[Done]):
    """The last answer on this connection came too late: put back what it took from queues."""

    kind = RETURN


@dataclass(frozen=True, slots=True)
class Board(Request[BoardPlace]):
    """Asks where in shared memory the variables are that a stage reads."""

    kind = BOARD
    session: str
    stage: int


# -- the table ----------------------------------------------------------------------------------------

_OF_TASKS = (Ping, Describe, Reset, Bye, Stop, Inspect, Moved)
_OF_STATE = (Lead, Replicate, StandDown, ReadVariables)
_OF_SESSIONS = (Register, Run, Push, Cancel, Close, Return, Board)
#: what a task answers once both sides have said who they are, by kind
REQUESTS: dict[int, type[Request[Any]]] = {
    message.kind: message for message in (*_OF_TASKS, *_OF_STATE, *_OF_SESSIONS)
}
ANSWERS: tuple[type[Answer], ...] = (
    Welcome,
    Failed,
    Done,
    Ran,
    Description,
    BoardPlace,
    Led,
    VariablesRead,
    Inspected,
)
#: every struct that is the fields of a frame
ALL: tuple[type[Message], ...] = (Hello, *REQUESTS.values(), *ANSWERS)


def request_of(kind: int) -> type[Request[Any]]:
    """The request of that kind. Raises InvalidArgumentError when there is none."""
    request = REQUESTS.get(kind)
    if request is None:
        raise malformed(f"there is no message of kind {kind}")
    return request
