"""The guard's connections: to servers that only answer whether they are alive and note what they are told."""

import contextlib
import threading
import time

import pytest

from tensorfleet.base import errors
from tensorfleet.cli.guarding import PairGuard, RunGuards
from tensorfleet.cli.plan import Task
from tensorfleet.cli.replicas import ServerPair
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport.connection import listen_at
from tensorfleet.cluster.transport.listener import Listener
from tensorfleet.cluster.transport.token import token
from tests.support.waiting import until


class SmallServer:
    """Answers pings and decisions."""

    def __init__(self, port=0, incarnation=1):
        self.decisions = []
        self.moves = {}
        self.refuses = ""
        self.answers = threading.Event()
        self.answers.set()
        self.incarnation = incarnation
        sockets = listen_at("127.0.0.1", port)
        self.port = sockets[0].getsockname()[1]
        self._channels = []
        self._listener = Listener(sockets, token(), self._welcome, self._serve, 1 << 20)
        self._listener.start()

    @property
    def address(self):
        """Where it is."""
        return f"127.0.0.1:{self.port}"

    def close(self):
        """Ends it, with its connections."""
        self.answers.set()
        self._listener.close()
        for channel in self._channels:
            channel.shut()

    def _welcome(self):
        return messages.Welcome(self.incarnation, "/job:ps/replica:0/task:0", "ps", 0, {"ps": [self.address]})

    def _serve(self, channel, hello):
        self._channels.append(channel)
        with contextlib.suppress(OSError, errors.OpError):
            while True:
                frame = channel.receive()
                self.answers.wait(60)
                channel.say(self._answer(frame.read(messages.request_of(frame.kind))))
        channel.close()

    def _answer(self, request):
        match request:
            case messages.Moved():
                self.moves.update(request.addresses)
            case messages.Lead():
                self.decisions.append((request.epoch, request.standby))
                if self.refuses:
                    return messages.Failed(errors.FAILED_PRECONDITION, self.refuses)
                return messages.Led(request.epoch, 0)
            case messages.StandDown():
                self.decisions.append((request.epoch, "stand down"))
                return messages.Led(request.epoch, 0)
        return messages.Done()


class Heard:
    """What the launcher hears of a guard."""

    def __init__(self):
        self.notes, self.restarts, self.losses = [], [], []

    def on_restart(self, label):
        self.restarts.append(label)

    def on_lost(self, label, cause, text):
        self.losses.append((label, cause, text))

    def on_decision(self, task, text):
        assert task == "ps/0"
        self.notes.append(text)

    def on_note(self, text):
        self.notes.append(text)


@pytest.fixture
def servers():
    both = [SmallServer(), SmallServer()]
    yield both
    for server in both:
        server.close()


def pair_of(servers):
    addresses = servers[0].address, servers[1].address
    return ServerPair("ps/0", ("ps/0", "ps-standby/0"), addresses, "ps", 0, {"ps": [addresses[0]]})


@contextlib.contextmanager
def guarded(servers, **options):
    """A guard that has made the first server lead; and what it told."""
    heard = Heard()
    guard = PairGuard(pair_of(servers), heard, **options)
    guard.start()
    try:
        until(lambda: heard.notes, "the first decision")
        assert servers[0].decisions == [(1, servers[1].address)]
        yield guard, heard
    finally:
        guard.close()
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith(("guard of", "watch of", "lead of"))]


def test_the_standby_is_told_within_moments_of_the_end_of_its_primary(servers):
    with guarded(servers) as (guard, heard):
        servers[0].close()
        guard.exited("ps/0", "died (signal 9)")
        began = time.monotonic()
        until(lambda: servers[1].decisions, "the second decision", every=0.001)
        assert time.monotonic() - began < 0.5  # on a busy machine; a ping would take longer
        assert servers[1].decisions == [(2, "")]
        until(lambda: heard.restarts == ["ps/0"], "the restart")
    assert heard.notes[1].startswith("ps/0 died (signal 9); ps-standby/0 leads it now (epoch 2)")


def test_a_new_standby_is_adopted(servers):
    with guarded(servers) as (guard, heard):
        servers[0].close()
        guard.exited("ps/0", "died (signal 9)")
        until(lambda: heard.restarts, "the restart")
        guard.started("ps/0")
        fresh = SmallServer(servers[0].port, incarnation=2)
        until(lambda: len(heard.notes) > 2, "the adoption")
        fresh.close()
    assert servers[1].decisions == [(2, ""), (3, servers[0].address)]


def test_the_standby_takes_over_from_a_server_that_says_nothing(servers):
    with guarded(servers) as (_, heard):
        servers[0].answers.clear()
        until(lambda: servers[1].decisions == [(2, "")], "the second decision")
        until(lambda: len(heard.notes) > 1, "the note")
    assert "ps/0 did not answer for 1." in heard.notes[1]


def test_the_standby_takes_over_from_a_server_that_has_gone_where_nobody_tells_its_end(servers):
    with guarded(servers, by_hand=True) as (_, heard):
        servers[0].close()
        until(lambda: servers[1].decisions == [(2, "")], "the second decision")
        until(lambda: heard.restarts == ["ps/0"], "the restart")
        fresh = SmallServer(servers[0].port, incarnation=2)
        until(lambda: len(heard.notes) > 2, "the adoption")
        fresh.close()
    assert servers[1].decisions == [(2, ""), (3, servers[0].address)]
    assert "ps/0 takes no connections any more; ps-standby/0 leads it now" in heard.notes[1]


def test_a_server_that_was_started_again_by_hand_is_a_new_one(servers):
    with guarded(servers, by_hand=True) as (_, heard):
        servers[0].close()
        fresh = SmallServer(servers[0].port, incarnation=2)
        until(lambda: servers[1].decisions[1:], "the adoption")
        fresh.close()
    assert servers[1].decisions == [(2, ""), (3, servers[0].address)]


def test_the_launcher_hears_that_both_are_gone(servers):
    with guarded(servers) as (guard, heard):
        servers[1].refuses = "its copy is not complete."
        guard.exited("ps/0", "died (signal 9)")
        until(lambda: heard.losses, "the loss")
    text = "ps/0 and its standby are both gone: updates since the last checkpoint are lost."
    assert heard.losses == [("ps/0", "ps/0", text)]
    assert heard.notes[1] == "ps-standby/0 cannot lead ps/0: its copy is not complete."


def test_a_leader_learns_where_its_standby_is_before_it_connects_to_it(servers):
    elsewhere = SmallServer()
    moves = {}
    with guarded(servers, moves=lambda: moves) as (guard, heard):
        servers[1].close()
        guard.exited("ps-standby/0", "is lost (its machine has died)")
        until(lambda: heard.restarts == ["ps-standby/0"], "the restart")
        moves[servers[1].address] = elsewhere.address
        guard.started("ps-standby/0")
        until(lambda: len(servers[0].decisions) == 3, "the adoption")
    elsewhere.close()
    assert servers[0].moves == moves
    assert servers[0].decisions[1:] == [(2, ""), (3, servers[1].address)]


class Mover:
    """Who wants a task to move."""

    def __init__(self):
        self.steps, self.ends = [], []

    def on_decision(self, text):
        self.steps.append(text)

    def on_end(self, why):
        self.ends.append(why)


def test_the_servers_hear_of_a_move_in_order(servers):
    with guarded(servers) as (guard, heard):
        mover = Mover()
        assert guard.begin_move(mover, replaces=False)
        assert not guard.begin_move(Mover(), replaces=False)
        until(lambda: mover.ends == [""], "the end of the move")
        assert guard.leader == "ps-standby/0"
        assert guard.begin_move(mover, replaces=False)
        until(lambda: mover.ends == ["", ""], "the end of the second move")
    assert servers[0].decisions == [
        (1, servers[1].address),
        (2, "stand down"),
        (5, servers[1].address),
    ]
    assert servers[1].decisions == [(3, servers[0].address), (4, "stand down")]
    assert mover.steps == heard.notes[1:]


def test_a_move_is_given_up_and_another_one_may_begin(servers):
    with guarded(servers) as (guard, heard):
        mover = Mover()
        guard.begin_move(mover, replaces=True)
        until(lambda: heard.restarts == ["ps-standby/0"], "the restart")
        guard.give_up_move("It took too long.")
        until(lambda: mover.ends == ["It took too long."], "the end")
        assert guard.begin_move(Mover(), replaces=False)


def test_what_a_seat_becomes_is_what_the_guard_wants(servers):
    guards = RunGuards([pair_of(servers)], Heard(), dict)
    script = Task("ps", 0, servers[0].address, ["python3", "train.py"], {"TF_CONFIG": "{}", "X": "1"})
    worker = Task("worker", 0, "h:1", ["python3", "train.py"], {})
    assert guards.begin(script) is script and guards.begin(worker) is worker
    guards.stand_by("ps/0", True)
    standby = guards.begin(script)
    assert standby.command[:5] == ["python3", "-m", "tensorfleet", "standby", "--task"]
    assert "TF_CONFIG" not in standby.environment and standby.environment["X"] == "1"
    guards.stand_by("ps/0", False)
    assert guards.begin(script) is script
    guards.close()
