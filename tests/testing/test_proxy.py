"""The network with faults, before a server that sends everything back."""

import contextlib
import socket
import threading
import time

import pytest

from tensorfleet.testing.proxy import Proxy


@pytest.fixture
def network():
    listener = socket.create_server(("localhost", 0))

    def answer(sock):
        with contextlib.suppress(OSError), sock:
            while data := sock.recv(1 << 16):
                sock.sendall(data)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with Proxy(f"localhost:{listener.getsockname()[1]}", seed=3) as result:
        yield result
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def connect(network):
    host, _, port = network.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def echo(sock, data=b"hello"):
    sock.sendall(data)
    heard = b""
    while len(heard) < len(data):
        more = sock.recv(1 << 16)
        if not more:
            raise ConnectionError
        heard += more
    return heard


def test_without_faults_everything_goes_through(network):
    with connect(network) as sock:
        assert echo(sock) == b"hello"
        data = bytes(range(256)) * 4096
        threading.Thread(target=sock.sendall, args=(data,), daemon=True).start()
        heard = b""
        while len(heard) < len(data):
            heard += sock.recv(1 << 16)
        assert heard == data
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""


def test_the_bytes_that_have_arrived_are_counted_each_way(network):
    with connect(network) as sock:
        assert echo(sock) == b"hello"
    assert [network.passed(way) for way in ("to the server", "to the client", "both")] == [5, 5, 10]


def test_delay_and_throttle_take_their_time(network):
    with connect(network) as sock:
        network.delay(0.2)
        began = time.monotonic()
        assert echo(sock) == b"hello"
        assert time.monotonic() - began >= 0.4
        network.heal()
        network.throttle(10_000, "to the server")
        began = time.monotonic()
        assert echo(sock, bytes(5000)) == bytes(5000)
        assert time.monotonic() - began >= 0.4


def test_a_cut_resets_what_is_open_and_nothing_else(network):
    with connect(network) as sock, connect(network) as other:
        assert echo(sock) == echo(other) == b"hello"
        network.cut()
        for one in (sock, other):
            with pytest.raises(ConnectionError):
                echo(one)
    with connect(network) as sock:
        assert echo(sock) == b"hello"


@pytest.mark.parametrize("way", ["to the server", "to the client", "both"])
def test_a_partition_is_silent_and_heals(network, way):
    with connect(network) as sock:
        assert echo(sock) == b"hello"
        network.partition(way)
        sock.settimeout(0.3)
        with pytest.raises(TimeoutError):
            echo(sock, b"lost?")
        network.heal()
        sock.settimeout(60)
        assert sock.recv(5) == b"lost?"


def test_corruption_and_resets_come_with_their_chance_and_the_same_for_a_seed(network):
    network.corrupt(1.0, "to the server")
    with connect(network) as sock:
        assert sum(a != b for a, b in zip(echo(sock), b"hello", strict=True)) == 1
    network.heal()
    network.reset_at_random(1.0)
    with connect(network) as sock, pytest.raises(ConnectionError):
        echo(sock)
    assert Proxy("localhost:1", seed=5, quiet=True)._random.random() == pytest.approx(0.6229016948897019)


def test_what_happens_is_printed(network, capsys):
    network.partition("to the client")
    network.heal()
    message = capsys.readouterr().out
    assert "lets nothing through, to the client" in message and "is healed" in message
