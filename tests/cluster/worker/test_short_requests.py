"""Connections that are lent to one thread, which answers their short requests, and when they are given back."""

import math
import socket
import threading
import types

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base import errors
from tensorfleet.cluster.messages import OK, PING, RUN, Run
from tensorfleet.cluster.transport import wire
from tensorfleet.cluster.worker import short_requests
from tensorfleet.cluster.worker.short_requests import ShortRequests
from tensorfleet.cluster.worker.stages import SHORT_SECONDS, RegisteredStage
from tensorfleet.testing.cluster import free_addresses
from tests.support.waiting import SECONDS, in_background, together, until

HANDLE = "0" * 16
SHARED = "tensorfleet-short"


class Work:
    """A worker with one stage, which does what `does` says and tells in which threads."""

    def __init__(self):
        self.does = lambda: [np.float32(1)]
        self.ran_in = []
        self.replica = None
        self.is_short = True
        stage = types.SimpleNamespace(
            reply=[0], given=0, last_seconds=0.0, is_short=lambda total: self.is_short
        )
        self.known = types.SimpleNamespace(stages={7: stage}, cancelled={})

    def session(self, handle):
        return self.known

    def run_alone(self, session, stage, timeout, given, versions=None):
        self.ran_in.append(threading.current_thread().name)
        return self.does()


class Client:
    """The end of a connection that asks; the other end is lent as soon as it is received from."""

    def __init__(self, shorts):
        mine, theirs = socket.socketpair(socket.AF_UNIX)
        self.channel = wire.Channel(mine)
        self.served = wire.Channel(theirs, asks=False)
        self.served.short_requests = self.served.due_before_loan
        self.own = in_background(shorts.receive, self.served)
        until(lambda: shorts._loans.get(theirs.fileno()) is not None or self.own.done())

    def ask(self, kind=RUN):
        self.channel.send(kind, Run.pack(HANDLE, 1, 7, 1, 0, 0) if kind == RUN else b"")

    def answer(self):
        return in_background(self.channel.receive).result(SECONDS)


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def failures():
    return []


@pytest.fixture
def shorts(work, failures):
    made = ShortRequests(
        work, lambda channel, e: failures.append((threading.current_thread().name, str(e.message)))
    )
    made._short.add(0)  # another connection with short requests
    yield made
    made.close()
    until(lambda: not any(t.name.startswith(SHARED) for t in threading.enumerate()), "the end of its threads")


@pytest.fixture
def connect(shorts):
    clients = []

    def connected():
        clients.append(Client(shorts))
        return clients[-1]

    yield connected
    for client in clients:
        client.channel.close()
    for client in clients:
        client.own.exception(SECONDS)
        client.served.close()


def test_the_short_requests_of_all_clients_are_answered_by_one_thread(connect, work):
    clients = [connect() for _ in range(3)]
    for _ in range(5):
        for client in clients:
            client.ask()
        for client in clients:
            frame = client.answer()
            assert frame.kind == OK and frame.tensors[0] == 1
    assert work.ran_in == [SHARED] * 15


def test_a_single_connection_with_short_requests_keeps_its_own_thread(shorts, work):
    shorts._short.clear()
    mine, theirs = (wire.Channel(end) for end in socket.socketpair(socket.AF_UNIX))
    for channel, lends in ((mine, False), (theirs, True)):
        channel.short_requests = channel.due_before_loan
        own = in_background(shorts.receive, channel)
        until(lambda channel=channel: id(channel) in shorts._short)
        until(lambda lends=lends: bool(shorts._loans) is lends)
        other = theirs if channel is mine else mine
        other.send(PING, b"")
        assert own.result(SECONDS).kind == PING
    shorts.forget(mine)
    shorts.forget(theirs)
    assert not shorts._short
    mine.close()
    theirs.close()


def test_any_other_request_is_for_the_connections_own_thread(connect):
    client = connect()
    client.ask(PING)
    assert client.own.result(SECONDS).kind == PING


def test_a_request_that_is_not_short_is_for_the_connections_own_thread(connect, work):
    client, work.is_short = connect(), False
    client.ask()
    assert client.own.result(SECONDS).kind == RUN
    assert work.ran_in == []


def test_a_connection_that_was_given_back_at_once_is_lent_after_more_short_requests(connect):
    client = connect()
    before = client.served.due_before_loan
    client.ask(PING)
    client.own.result(SECONDS)
    assert client.served.short_requests == 0 and client.served.due_before_loan == 2 * before


def test_a_loan_that_was_worth_it_does_not_delay_the_next(connect):
    client = connect()
    before = client.served.due_before_loan
    for _ in range(before):
        client.ask()
        client.answer()
    client.ask(PING)
    client.own.result(SECONDS)
    assert client.served.due_before_loan == before


def test_half_a_request_does_not_hold_up_the_others(connect):
    slow, quick = connect(), connect()
    frame = slow.channel._bare(RUN, Run.pack(HANDLE, 1, 7, 1, 0, 0))
    slow.channel.sock.sendall(frame[:40])
    quick.ask()
    assert quick.answer().kind == OK
    slow.channel.sock.sendall(frame[40:])
    assert slow.own.result(SECONDS).kind == RUN


def test_a_request_that_came_together_with_another_is_not_forgotten(connect, work):
    client = connect()
    request = Run.pack(HANDLE, 1, 7, 1, 0, 0)
    client.channel.sock.sendall(client.channel._bare(RUN, request) + client.channel._bare(RUN, request))
    assert client.answer().kind == OK
    assert client.own.result(SECONDS).kind == RUN
    assert work.ran_in == [SHARED]


def test_the_end_of_a_connection_reaches_its_own_thread(connect):
    client = connect()
    client.channel.close()
    with pytest.raises(ConnectionError):
        client.own.result(SECONDS)


def test_the_request_of_a_client_that_has_gone_is_not_run(connect, work, monkeypatch):
    monkeypatch.setattr(short_requests, "_MAX_HOLD_UP_SECONDS", SECONDS)  # no other thread goes on meanwhile
    blocked, gone = connect(), connect()
    goes_on, is_in = threading.Event(), threading.Event()

    def wait():
        is_in.set()
        assert goes_on.wait(SECONDS)
        return [np.float32(1)]

    work.does = wait
    blocked.ask()
    assert is_in.wait(SECONDS)
    gone.ask()
    gone.channel.close()
    goes_on.set()
    blocked.answer()
    assert gone.own.result(SECONDS).kind == RUN  # the server finds the connection closed
    assert work.ran_in == [SHARED] and gone.served.is_closed()


def test_a_malformed_request_ends_its_connection_only(connect):
    bad, good = connect(), connect()
    bad.channel.sock.sendall(b"x" * 100)
    with pytest.raises(errors.InvalidArgumentError):
        bad.own.result(SECONDS)
    good.ask()
    assert good.answer().kind == OK


def test_the_connections_own_thread_tells_of_a_failure(connect, work, failures):
    def fail():
        raise errors.InternalError(None, None, "it broke")

    client, work.does = connect(), fail
    client.ask()
    until(lambda: failures)
    assert failures[0][0] != SHARED and failures[0][1] == "it broke"


def test_a_client_that_reads_no_answers_is_left_to_its_own_thread(connect, work):
    work.does = lambda: [np.zeros(3000, np.float32)]
    full, other = connect(), connect()
    asked = 0
    while full.served.short_requests:  # until it was given back
        full.ask()
        asked += 1
        other.ask()
        assert other.answer().kind == OK
    for _ in range(len(work.ran_in) - asked):  # nothing is lost or sent twice
        frame = full.answer()
        assert frame.kind == OK and frame.tensors[0].shape == (3000,)


def test_a_request_that_takes_long_does_not_hold_up_the_others(connect, work):
    first, second = connect(), connect()
    goes_on, is_in = threading.Event(), threading.Event()

    def wait():
        work.does = lambda: [np.float32(2)]
        is_in.set()
        assert goes_on.wait(SECONDS)
        return [np.float32(1)]

    work.does = wait
    first.ask()
    assert is_in.wait(SECONDS)
    second.ask()
    assert second.answer().tensors[0] == 2
    goes_on.set()
    assert first.answer().tensors[0] == 1
    first.ask(PING)  # its own thread has it again
    assert first.own.result(SECONDS).kind == PING


def test_all_connections_are_given_back_when_the_server_ends(shorts, connect):
    clients = [connect(), connect()]
    shorts.close()
    for client in clients:
        client.ask(PING)
        assert client.own.result(SECONDS).kind == PING


def test_a_stage_is_short_unless_its_last_two_runs_took_long():
    stage = types.SimpleNamespace(_took=(math.inf, math.inf), _simple=True, is_alone=lambda total: True)

    def after(*runs):
        for seconds in runs:
            RegisteredStage.took(stage, seconds)
        return RegisteredStage.is_short(stage, 1)

    assert not RegisteredStage.is_short(stage, 1)
    assert after(SHORT_SECONDS / 2)
    assert after(1.0)
    assert not after(1.0)


def test_no_update_of_many_connections_is_lost(serve, monkeypatch):
    # On a busy machine an update may take long, and would get a thread of its own.
    monkeypatch.setattr(RegisteredStage, "is_short", lambda stage, total: True)
    spec = free_addresses(ps=1, worker=1)
    ps, worker = serve(spec, "ps", 0), serve(spec, "worker", 0)
    with tf.device("/job:ps/task:0"):
        count = tf.get_variable("count", [], tf.float32, tf.zeros_initializer())
        add = tf.assign_add(count, 1.0).op
    with tf.Session(worker.target) as session:
        session.run(count.initializer)

        def update():
            for _ in range(200):
                session.run(add)

        together(*[update] * 4)
        assert session.run(count) == 800
        assert ps._shorts._answered > 100
