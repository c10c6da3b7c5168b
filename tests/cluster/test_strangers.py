"""What comes to an open port: strangers, nonsense, liars. Everybody else is served all the while."""

import contextlib
import json
import random
import resource
import socket
import struct
import threading

import pytest

import tensorfleet as tf
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import connection
from tensorfleet.cluster.transport import handshake as greeting
from tensorfleet.cluster.transport.token import token
from tensorfleet.testing.cluster import ProcessCluster

SECONDS = 5


@pytest.fixture(scope="module")
def server():
    made = tf.train.Server.create_local_server()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def still_serves(server):
    yield
    channel, _ = talk(server)
    channel.say(messages.Describe())
    assert channel.receive().read(messages.Description).devices
    channel.close()


def port(server):
    return int(server.target.rpartition(":")[2])


def stranger(server):
    sock = socket.create_connection(("localhost", port(server)), timeout=SECONDS)
    return sock


def talk(server):
    return connection.connect(f"localhost:{port(server)}", token(), messages.Hello("test"), SECONDS)


def ends(sock):
    """Whether the other side closes the connection, after whatever it says."""
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    sock.close()
    return True


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        bytes(1000),
        random.Random(1).randbytes(1000),
        greeting.PREFACE[:-1] + b"x" * 60,
    ],
)
def test_a_stranger_is_shown_out(server, said):
    sock = stranger(server)
    sock.sendall(said)
    assert ends(sock)


def test_a_wrong_proof_is_refused_before_anything_is_read(server):
    for kind in messages.KINDS:
        sock = stranger(server)
        sock.sendall(greeting.PREFACE + bytes(greeting.NONCE))
        assert len(sock.recv(64)) > 0
        frame = struct.pack("<4sBxHIIIQ", b"TFLT", kind, 0, 0, 0, 0, 0)
        sock.sendall(bytes(32) + frame)
        assert ends(sock)


def test_crowds_that_say_nothing_do_not_keep_others_out(server):
    crowd = [stranger(server) for _ in range(400)]
    half = [stranger(server) for _ in range(50)]
    for sock in half:
        sock.sendall(greeting.PREFACE[:5])
    channel, _ = talk(server)
    channel.say(messages.Ping())
    assert channel.receive().kind == messages.OK
    channel.close()
    for sock in (*crowd, *half):
        sock.close()


def test_one_shown_out_while_it_speaks_ends_nothing_else(server):
    """A newcomer takes the place of the oldest, whose words have come in the same moment."""
    for _ in range(20):
        crowd = [stranger(server) for _ in range(260)]
        for sock in crowd[:100]:
            with contextlib.suppress(ConnectionError):
                sock.send(b"x")
        newer = [stranger(server) for _ in range(100)]
        for sock in (*crowd, *newer):
            sock.close()


def header(kind, count=0, fields=0, described=0, body=0, magic=b"TFLT"):
    return struct.pack("<4sBxHIIIQ", magic, kind, count, 1, fields, described, body)


LIES = {
    "another magic": header(messages.PING, magic=b"XXXX"),
    "fields of 4 GB": header(messages.PING, fields=(1 << 32) - 1),
    "a body of 2**60 bytes": header(messages.RUN, count=1, described=10, body=1 << 60),
    "a tensor of 2**62 elements": header(messages.RUN, 1, 0, 18, 64)
    + struct.pack("<BBQq", 1, 1, 64, 1 << 62),
    "a negative dimension": header(messages.RUN, 1, 0, 18, 64) + struct.pack("<BBQq", 1, 1, 64, -4),
    "255 dimensions": header(messages.RUN, 1, 0, 10, 0) + struct.pack("<BBQ", 1, 255, 0),
    "an unknown element type": header(messages.RUN, 1, 0, 18, 64) + struct.pack("<BBQq", 99, 1, 4, 1),
    "a type that holds objects": header(messages.RUN, 1, 0, 10, 64) + struct.pack("<BBQ", 20, 0, 8),
    "strings beyond their table": header(messages.RUN, 1, 0, 18, 64) + struct.pack("<BBQq", 7, 1, 8, 1 << 40),
    "strings that overlap": header(messages.RUN, 1, 0, 18, 64)
    + struct.pack("<BBQq", 7, 1, 24, 2)
    + struct.pack("<QQ", 9, 3).ljust(64, b"a"),
    "descriptions cut off": header(messages.RUN, 2, 0, 10, 0) + struct.pack("<BBQ", 1, 0, 4),
    "a body without tensors": header(messages.RUN, 0, 0, 0, 64) + bytes(64),
    "half a frame": header(messages.RUN, 1, 0, 18, 64)[:7],
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_about_sizes_are_found_before_memory_is_taken(server, lie):
    channel, _ = talk(server)
    channel.sock.settimeout(SECONDS)
    channel.sock.sendall(LIES[lie])
    channel.sock.shutdown(socket.SHUT_WR)
    assert ends(channel.sock)


EVIL = [
    (messages.REGISTER, {}),
    (messages.REGISTER, {"session": "x", "create": True, "known": [], "stages": []}),
    (messages.REGISTER, {"session": ["x"], "known": "no", "stages": 3}),
    (messages.PUSH, {"session": "nobody", "step": 1, "names": []}),
    (messages.CANCEL, {"session": "nobody"}),
    (messages.CLOSE, {}),
    (messages.RESET, {"containers": 5}),
    (messages.BYE, {}),
    (200, {}),
]


@pytest.mark.parametrize(("kind", "fields"), EVIL)
def test_messages_that_make_no_sense_get_an_error_or_nothing(server, kind, fields):
    channel, _ = talk(server)
    channel.sock.settimeout(SECONDS)
    channel.send(kind, json.dumps(fields).encode())
    assert channel.receive().kind in (messages.FAILED, messages.OK)
    channel.say(messages.Ping())  # the connection is as good as before
    assert channel.receive().kind == messages.OK
    channel.close()


def test_deeply_nested_fields(server):
    channel, _ = talk(server)
    channel.sock.settimeout(SECONDS)
    channel.send(messages.DESCRIBE, b"[" * 100_000)
    assert channel.receive().kind == messages.FAILED
    channel.close()


def test_a_frame_that_comes_twice_ends_its_connection(server):
    channel, _ = talk(server)
    channel.sock.settimeout(SECONDS)
    channel.say(messages.Ping())
    assert channel.receive().kind == messages.OK
    channel.sent -= 1  # the same number again
    channel.say(messages.Ping())
    assert ends(channel.sock)


def test_frames_beyond_the_limit_are_refused(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_MAX_FRAME", "1000")
    small = tf.train.Server.create_local_server()
    try:
        channel, _ = talk(small)
        channel.sock.settimeout(SECONDS)
        channel.sock.sendall(header(messages.PUSH, 1, 2, 18, 1 << 20))
        assert ends(channel.sock)
    finally:
        small.stop()


def test_a_sender_of_one_byte_a_second_is_shown_out_and_nobody_waits_for_it(server, monkeypatch):
    monkeypatch.setattr(connection, "HANDSHAKE_SECONDS", 3.0)
    slow = stranger(server)
    never = threading.Event()
    for byte in greeting.PREFACE:
        channel, _ = talk(server)  # all the while
        channel.close()
        try:
            slow.sendall(bytes([byte]))
        except ConnectionError:
            break
        never.wait(0.5)
    assert ends(slow)


def test_a_slow_client_inside_holds_up_only_itself(server):
    slow, _ = talk(server)
    slow.sock.sendall(header(messages.DESCRIBE)[:5])
    channel, _ = talk(server)
    channel.say(messages.Ping())
    assert channel.receive().kind == messages.OK
    slow.sock.sendall(header(messages.DESCRIBE)[5:])
    assert slow.receive().read(messages.Description).devices
    for one in (slow, channel):
        one.close()


def test_ten_thousand_idle_connections():
    """As many as this process may have files: everybody else is served all the while, and the crowd is shown out."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 30_000 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(most, 30_000)), hard))
    count = min(10_000, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 600) * 9 // 10)
    crowd = []
    with ProcessCluster(worker=1) as cluster:
        address = ("localhost", int(cluster.cluster["worker"][0].rpartition(":")[2]))
        try:
            with tf.Graph().as_default(), tf.Session(cluster.target("worker", 0)) as sess:
                x = tf.constant(1.0) + 1.0
                for i in range(count):
                    crowd.append(socket.create_connection(address, timeout=60))
                    if i % 1000 == 0:
                        assert sess.run(x) == 2.0
                with tf.Session(cluster.target("worker", 0)) as other:
                    assert other.run(x) == 2.0
        finally:
            for sock in crowd:
                sock.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
