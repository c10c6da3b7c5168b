"""A task without a server answers questions about itself, and nothing else."""

import socket

import pytest

import tensorfleet as tf
from tensorfleet.cluster.inspection import listener
from tensorfleet.cluster.inspection.ask import ask
from tensorfleet.cluster.messages import Describe, Ping, Reset
from tensorfleet.cluster.transport import token
from tensorfleet.cluster.transport.peers import Peer


@pytest.fixture
def address(monkeypatch):
    sock = socket.create_server(("127.0.0.1", 0))
    place = f"127.0.0.1:{sock.getsockname()[1]}"
    monkeypatch.setenv("TENSORFLEET_INSPECT", f"evaluator/0@{place}")
    running = listener.serve(sock)
    yield place
    running.close()


@pytest.fixture
def peer(address):
    one = Peer("evaluator/0", address, watched=False)
    yield one
    one.forget()


def test_it_tells_its_load_under_the_name_that_the_launcher_gave_it(address):
    report = ask("evaluator/0", address, "stats").content
    assert report["task"] == "evaluator/0" and report["pid"] > 0


def test_it_says_that_it_is_alive_and_has_no_devices_for_others(peer):
    peer.call(Ping())
    assert peer.call(Describe()).devices == []
    assert (peer.welcome.job, peer.welcome.index) == ("evaluator", 0)


def test_any_other_request_is_refused_and_the_connection_goes_on(peer):
    with pytest.raises(tf.errors.UnimplementedError, match="evaluator/0 has no tf.train.Server"):
        peer.call(Reset())
    peer.call(Ping())


def test_whoever_has_not_the_token_is_not_answered(address, monkeypatch):
    monkeypatch.setattr(token, "secured", token.Settings())
    token.secure(token="another secret than that")
    with pytest.raises(tf.errors.UnauthenticatedError):
        ask("evaluator/0", address, "stats")
