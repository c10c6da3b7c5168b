"""Where a task listens and how it is named: ports in use, IPv6, names of several addresses, tokens from odd places."""

import errno
import os
import socket
import threading

import pytest

import tensorfleet as tf
from tensorfleet.base import logging
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import connection
from tensorfleet.cluster.transport.connection import split_address
from tensorfleet.cluster.transport.token import token


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def answer(target):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        return sess.run(tf.placeholder_with_default(20.0, []) + 1.0)


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_a_server_at_an_ipv6_address():
    server = tf.train.Server({"local": ["[::1]:0"]})
    try:
        host, _, port = server.target.removeprefix("grpc://").rpartition(":")
        assert host == "[::1]" and port != "0"
        assert answer(server.target) == 21.0
        assert answer(f"grpc://[0:0:0:0:0:0:0:1]:{port}") == 21.0  # over TCP
    finally:
        server.stop()


def test_a_name_of_several_addresses_is_listened_at_on_all_that_are_here(monkeypatch):
    resolve = socket.getaddrinfo

    def several(host, port, *args, **kwargs):
        hosts = ["192.0.2.1", "127.0.0.3", "127.0.0.4"] if host == "several.test" else [host]
        return [one for h in hosts for one in resolve(h, port, *args, **kwargs)]

    monkeypatch.setattr(socket, "getaddrinfo", several)
    found = connection.listen_at("several.test", 0)
    try:
        ports = {s.getsockname()[1] for s in found}
        assert [s.getsockname()[0] for s in found] == ["127.0.0.3", "127.0.0.4"] and len(ports) == 1
        with pytest.raises(OSError) as raised:
            connection.listen_at("several.test", ports.pop())
        assert raised.value.errno == errno.EADDRINUSE
    finally:
        for sock in found:
            sock.close()


def test_a_name_that_nobody_answers_for_is_waited_for_no_longer_than_the_deadline(monkeypatch):
    asked, answer, resolve = [], threading.Event(), socket.getaddrinfo

    def slow(host, port, *args, **kwargs):
        if host == "slow.test" and not kwargs.get("flags"):
            asked.append(host)
            answer.wait(600)
            host = "127.0.0.1"
        return resolve(host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    server = tf.train.Server.create_local_server()
    port = server.target.rpartition(":")[2]
    config = tf.ConfigProto(operation_timeout_in_ms=300)
    try:
        for _ in range(3):
            with pytest.raises(tf.errors.DeadlineExceededError, match="looking up the name slow.test"):
                tf.Session(f"grpc://slow.test:{port}", config=config).run(tf.constant(1.0))
        assert len(asked) == 1  # nobody asks again while a question is open
        answer.set()
        with tf.Session(f"grpc://slow.test:{port}") as sess:
            assert sess.run(tf.constant(2.0)) == 2.0
    finally:
        answer.set()
        server.stop()


def test_a_name_that_is_not_known_is_an_error_of_its_own(monkeypatch):
    def unknown(host, *args, **kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    for _ in range(2):  # it is asked for again the next time
        with pytest.raises(socket.gaierror, match="not known"):
            connection.addresses("nobody.test", 1, 60)
    assert not connection._lookups


def test_tasks_at_one_port_of_two_loopback_addresses_are_told_apart():
    first = tf.train.Server({"first": ["127.0.0.1:0"]})
    port = first.target.rpartition(":")[2]
    try:
        second = tf.train.Server({"second": [f"127.0.0.9:{port}"]})
    except tf.errors.UnknownError:
        first.stop()
        pytest.skip("another program has that port")
    try:
        for server, job in ((first, "first"), (second, "second")):
            address = server.target.removeprefix("grpc://")
            channel, welcome = connection.connect(address, token(), messages.Hello("test"), 60)
            channel.close()
            assert welcome.job == job
    finally:
        first.stop()
        second.stop()


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="needs /proc/net/tcp to see addresses")
def test_a_port_in_use_is_named_with_the_process_that_has_it():
    held = socket.create_server(("localhost", 0))
    with pytest.raises(tf.errors.UnknownError, match=f"process {os.getpid()}: "):
        tf.train.Server({"local": [f"localhost:{held.getsockname()[1]}"]})
    held.close()


def test_an_address_that_others_cannot_use_is_warned_of(monkeypatch):
    said = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: said.append(text % args))
    monkeypatch.setenv("TENSORFLEET_TOKEN", "a secret that is long enough")
    for server in (
        tf.train.Server({"worker": ["0.0.0.0:0", "localhost:1"]}, "worker", 0, start=False),
        tf.train.Server({"worker": ["0.0.0.0:0"]}, start=False),
    ):
        server.stop()
    assert len(said) == 1 and "Other machines cannot reach it there" in said[0]


@pytest.fixture
def named(tmp_path, monkeypatch):
    """A token file that the environment names."""
    path = tmp_path / "token"
    monkeypatch.delenv("TENSORFLEET_TOKEN", raising=False)
    monkeypatch.setenv("TENSORFLEET_TOKEN_FILE", str(path))
    return path


def test_a_token_is_the_same_from_a_file_a_link_and_the_environment(named, monkeypatch):
    real = named.with_name("real")
    real.write_text("  secret\n\n")
    real.chmod(0o600)
    named.symlink_to(real)
    assert token() == b"secret"
    for text in ("secret", "secret\n", "secret\r\n"):
        monkeypatch.setenv("TENSORFLEET_TOKEN", text)
        assert token() == b"secret"


def test_a_token_that_others_can_read_is_refused_behind_a_link_too(named):
    real = named.with_name("real")
    real.write_text("secret")
    real.chmod(0o644)
    named.symlink_to(real)
    with pytest.raises(tf.errors.PermissionDeniedError, match="chmod 600"):
        token()


@pytest.mark.parametrize("what", ["nothing", "a folder", "a pipe", "blank"])
def test_a_token_that_is_none_is_an_error_and_no_wait(named, what):
    if what == "a folder":
        named.mkdir(mode=0o700)
    elif what == "a pipe":
        os.mkfifo(named, 0o600)
    elif what == "blank":
        named.write_text(" \n")
        named.chmod(0o600)
    with pytest.raises(tf.errors.FailedPreconditionError, match="token"):
        token()


def test_a_blank_token_in_the_environment_is_an_error(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_TOKEN", " \n")
    with pytest.raises(tf.errors.FailedPreconditionError, match="blank"):
        token()


def test_spaces_in_an_address_do_not_count():
    assert split_address(" localhost: 2222") == ("localhost", 2222)
