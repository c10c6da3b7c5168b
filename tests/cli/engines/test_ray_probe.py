"""A head of a Ray cluster is told from other programs by its answer to one call."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from tensorfleet.cli.engines import ray_connection
from tensorfleet.cli.engines.base import EngineError
from tensorfleet.cli.engines.ray_probe import HeadAnswer, call, is_head

SECONDS = 10.0


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


SETTINGS, ACKNOWLEDGED = frame(4, payload=bytes(6)), frame(4, 1)
HELLO = SETTINGS + ACKNOWLEDGED
REPLY = frame(1, 4, 1, b"\x88") + frame(0, 0, 1, bytes(5)) + frame(1, 5, 1, b"\x40\x0bgrpc-status\x010")
WANTS_TOKEN = frame(1, 5, 1, b"\x88\x40\x0bgrpc-status\x0216")
UNKNOWN = frame(1, 5, 1, b"\x88\x40\x0bgrpc-status\x0212")

ANSWERS = [
    (HELLO + REPLY, True),
    (HELLO + WANTS_TOKEN, True),
    (HELLO + UNKNOWN, False),
    (HELLO + frame(3, stream=1, payload=bytes(4)), False),
    (SETTINGS + frame(7, payload=bytes(8)), False),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", False),
    (b"SSH-2.0-OpenSSH_9.2\r\n", False),
    (b"\x15\x03\x01\x00\x02\x02\x0a\x00\x00\x00", False),
    (frame(4)[:2] + b"\xff" + frame(4)[3:] + bytes(1 << 16), None),
    (b"\xff" + SETTINGS[1:], False),
    (HELLO + frame(1, 4, 3, b"\x0212"), None),
    (HELLO, None),
]


@pytest.mark.parametrize(("answer", "verdict"), ANSWERS)
@pytest.mark.parametrize("at_once", [1, 7, 100_000])
def test_an_answer_means_the_same_however_it_arrives(answer, verdict, at_once):
    reader, said = HeadAnswer(), None
    for begin in range(0, len(answer), at_once):
        said = reader.take(answer[begin : begin + at_once])
        if said is not None:
            break
    assert said is verdict


@contextlib.contextmanager
def listening(answer, hangs_up=True):
    """A program that waits for the whole call, and answers so."""
    asked = []

    def serve():
        connection, _ = server.accept()
        with connection:
            connection.settimeout(SECONDS)
            while sum(map(len, asked)) < len(call()) and (some := connection.recv(4096)):
                asked.append(some)
            connection.sendall(answer)
            if not hangs_up:
                while connection.recv(4096):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert b"".join(asked) == call()


@pytest.mark.parametrize(("answer", "verdict"), [(HELLO + REPLY, True), (b"\r\n" * 9, False), (b"", False)])
def test_what_answers_or_hangs_up_is_known_at_once(answer, verdict):
    with listening(answer) as place:
        assert is_head(*place, SECONDS) is verdict


@pytest.mark.parametrize(("answer", "verdict"), [(HELLO, True), (b"", False)])
def test_a_grpc_server_may_be_slow_and_a_silent_program_is_no_head(answer, verdict):
    with listening(answer, hangs_up=False) as place:
        assert is_head(*place, 0.5) is verdict


def test_another_program_at_the_address_is_refused_with_the_remedy():
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as (host, port):
        with pytest.raises(EngineError) as refused:
            ray_connection._try_to_reach(f"{host}:{port}")
    assert str(refused.value) == (
        f"Cannot reach a Ray cluster at {host}:{port}: another program listens there, or a cluster with TLS (RAY_USE_TLS). "
        "Start one with `ray start --head`, or give the address of one with --address or RAY_ADDRESS."
    )


def test_with_tls_and_for_the_client_a_listener_is_enough(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = "{}:{}".format(*server.getsockname())
        ray_connection._try_to_reach(f"ray://{place}")
        monkeypatch.setenv("RAY_USE_TLS", "1")
        ray_connection._try_to_reach(place)
