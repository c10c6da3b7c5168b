"""The first bytes of a connection: whatever is at the other end is recognized, told to the user and to the log."""

import contextlib
import http.server
import socket
import threading

import pytest

import tensorfleet as tf
from tensorfleet.base import logging
from tensorfleet.cli.certificates import make_certificates
from tensorfleet.cluster.transport import connection, peers, tls, token
from tensorfleet.cluster.transport import handshake as greeting
from tensorfleet.cluster.transport.handshake import PREFACE, RefusalLog, Refused
from tests.support.waiting import in_background, until

SECONDS = 60
SECRET = "the secret of this cluster"
OLD = b"TENSORFLEET/1\r\n\r\n" + bytes(32)
NEW = b"TENSORFLEET/31\r\n\r\n" + bytes(32)
GRPC = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x18\x04\x00\x00\x00\x00\x00"
TLS = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


@pytest.fixture(autouse=True)
def over_tcp(monkeypatch):
    """Within one machine a local socket would be used, which is nobody else's."""
    monkeypatch.setattr(connection, "has_local_names", lambda: False)
    monkeypatch.setenv("TENSORFLEET_TOKEN", SECRET)
    yield
    tf.fleet.secure()
    tls._contexts.clear()


@pytest.fixture
def said(monkeypatch):
    """The lines of the log that tell of refusals."""
    lines = []
    warning = logging.warning

    def log(text, *args, **kwargs):
        if "refused" in text:
            lines.append(text % args)
        warning(text, *args, **kwargs)

    monkeypatch.setattr(logging, "warning", log)
    return lines


@pytest.fixture
def answering():
    """Starts programs that answer every connection with some bytes, and read what comes."""
    with contextlib.ExitStack() as ending:

        def start(answer, closes=True, speaks_first=False):
            door = ending.enter_context(socket.create_server(("localhost", 0)))

            def serve():
                with contextlib.suppress(OSError):
                    while True:
                        sock, _ = door.accept()
                        ending.callback(sock.close)
                        if not speaks_first:
                            sock.recv(1 << 16)
                        sock.sendall(answer)
                        if closes:
                            sock.close()

            threading.Thread(target=serve, daemon=True).start()
            return f"localhost:{door.getsockname()[1]}"

        yield start


def waiting_session(address):
    """A session on a task, which would wait for it for minutes: its error, at once."""
    with tf.Graph().as_default(), pytest.raises(tf.errors.OpError) as raised:
        in_background(lambda: tf.Session(f"grpc://{address}").run(tf.constant(1.0))).result(SECONDS)
    return raised.value


# -- decisions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("heard", [PREFACE[:n] for n in range(len(PREFACE) + 1)] + [OLD[:12], NEW[:17]])
def test_the_beginning_of_an_opening_is_waited_for(heard):
    greeting.check_opening(heard)
    greeting.check_answer("a:1", heard, False)


@pytest.mark.parametrize(
    ("heard", "reason", "answer"),
    [
        (OLD, "version 1 .* this server version 4", b"TENSORFLEET/4 version\r\n\r\n"),
        (NEW, "version 31 ", b"TENSORFLEET/4 version\r\n\r\n"),
        (TLS, "speaks TLS, and this server does not", b"TENSORFLEET/4 plain\r\n\r\n"),
        (GRPC, "a gRPC client, such as TensorFlow's own", b""),
        (b"GET / HTTP/1.1\r\n", "a web client", b""),
        (b"\x00\xff garbage", r"another program, which says b'\\x00\\xff garbage'", b""),
        (b"TENSORFLEET/x", "another program", b""),
        (b"P", "another program", b""),
    ],
)
def test_a_server_recognizes_who_is_not_let_in(heard, reason, answer):
    with pytest.raises(Refused, match=reason) as raised:
        greeting.check_opening(heard)
    assert raised.value.answer == answer


@pytest.mark.parametrize(
    ("heard", "kind", "message"),
    [
        (b"HTTP/1.1 400 Bad Request", tf.errors.FailedPreconditionError, "a web server"),
        (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", tf.errors.FailedPreconditionError, "a gRPC server"),
        (b"SSH-2.0-OpenSSH", tf.errors.FailedPreconditionError, "an SSH server"),
        (b"220 smtp.test", tf.errors.FailedPreconditionError, "another program, which says b'220 smtp"),
        (OLD, tf.errors.UnimplementedError, "version 1 .* this process version 4"),
        (b"TENSORFLEET/4 version\r\n\r\n", tf.errors.UnimplementedError, "version 4 .* Install the same"),
        (b"TENSORFLEET/4 tls\r\n\r\n", tf.errors.UnauthenticatedError, "Set TENSORFLEET_TLS"),
        (b"TENSORFLEET/4 plain\r\n\r\n", tf.errors.UnauthenticatedError, "does not speak TLS"),
        (TLS, tf.errors.UnauthenticatedError, "speaks TLS, and this process does not"),
    ],
)
def test_a_client_has_an_error_for_each_kind_of_answer(heard, kind, message):
    with pytest.raises(kind, match=message):
        greeting.check_answer("a:1", heard, False)


def test_a_refusal_that_repeats_is_one_line_a_minute_for_each_host_and_reason():
    log = RefusalLog()
    assert log.line("a", "why", 0.0) == "why"
    assert log.line("a", "why", 59.0) is None
    assert log.line("b", "why", 59.0) == "why"
    assert log.line("a", "other", 59.0) == "other"
    assert log.line("a", "why", 60.0) == "why (1 more since the last such line)"
    assert log.line("a", "why", 61.0) is None


def test_a_crowd_of_reasons_does_not_fill_the_log():
    log = RefusalLog()
    lines = [log.line("a", f"why {i}", 0.0) for i in range(10_000)]
    assert len([line for line in lines if line]) == RefusalLog._MAX_REMEMBERED
    assert log.line("a", "why", 61.0) == "why"


# -- clients ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (b"\x7f\x01 garbage \x00", tf.errors.FailedPreconditionError, "not a TensorFleet task, but another"),
        (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", tf.errors.FailedPreconditionError, "a gRPC server"),
        (b"TENSORFLEET/9 version\r\n\r\n", tf.errors.UnimplementedError, "speaks version 9"),
        (PREFACE + bytes(64), tf.errors.UnauthenticatedError, "another cluster token"),
    ],
    ids=["garbage", "gRPC", "version", "token"],
)
@pytest.mark.parametrize("closes", [True, False])
def test_a_session_on_something_else_fails_at_once(answering, answer, kind, message, closes):
    address = answering(answer, closes)
    error = waiting_session(address)
    assert isinstance(error, kind) and address in error.message
    with pytest.raises(kind, match=message):
        raise error


def test_a_session_on_a_web_server_fails_at_once():
    with http.server.ThreadingHTTPServer(("localhost", 0), http.server.SimpleHTTPRequestHandler) as web:
        web.RequestHandlerClass.log_message = lambda *_: None
        threading.Thread(target=web.serve_forever, daemon=True).start()
        error = waiting_session(f"localhost:{web.server_address[1]}")
        web.shutdown()
    assert isinstance(error, tf.errors.FailedPreconditionError) and "a web server" in error.message


def test_a_silent_program_is_named_as_one(monkeypatch):
    monkeypatch.setattr(peers, "HANDSHAKE_SECONDS", 0.1)
    with socket.create_server(("localhost", 0)) as silent:
        target = f"grpc://localhost:{silent.getsockname()[1]}"
        config = tf.ConfigProto(operation_timeout_in_ms=500)
        with pytest.raises(tf.errors.DeadlineExceededError, match="accepted the connection and said nothing"):
            tf.Session(target, config=config).run(tf.constant(1.0))
        monkeypatch.setenv("TENSORFLEET_SILENT_SECONDS", "0.2")
        with pytest.raises(tf.errors.UnavailableError, match="accepted the connection and said nothing"):
            tf.fleet.stop_server(target)


# -- servers ------------------------------------------------------------------------------------------


def exchange(server, said):
    """What a server answers to some bytes before it closes the connection."""
    address = ("localhost", int(server.target.rpartition(":")[2]))
    with socket.create_connection(address, timeout=SECONDS) as sock:
        sock.sendall(said)
        heard = b""
        with contextlib.suppress(ConnectionError):
            while more := sock.recv(1 << 16):
                heard += more
        return heard, "{}:{}".format(*sock.getsockname()[:2])


@pytest.mark.parametrize(
    ("opening", "answer", "reason"),
    [
        (GRPC, b"", "a gRPC client, such as TensorFlow's own"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"", "a web client"),
        (bytes(100), b"", "another program"),
        (OLD, b"TENSORFLEET/4 version\r\n\r\n", "version 1 "),
        (TLS, b"TENSORFLEET/4 plain\r\n\r\n", "speaks TLS"),
    ],
    ids=["TensorFlow", "web", "garbage", "version", "TLS"],
)
def test_a_stranger_is_closed_at_once_with_one_line_that_names_it(server, said, opening, answer, reason):
    heard, name = exchange(server, opening)
    assert heard == answer
    exchange(server, opening)
    until(lambda: said)
    assert len(said) == 1 and reason in said[0]
    assert said[0].startswith(f"/job:local/replica:0/task:0 refused a connection from {name}: ")


def test_a_port_that_is_only_looked_at_is_not_told_of(server, said):
    address = ("localhost", int(server.target.rpartition(":")[2]))
    for _ in range(3):
        socket.create_connection(address, timeout=SECONDS).close()
    exchange(server, GRPC)
    until(lambda: said)
    assert len(said) == 1


def test_a_client_with_another_token_is_told_of_at_both_ends(server, said):
    tf.fleet.secure(token="the secret of another cluster")
    error = waiting_session(server.target.removeprefix("grpc://").replace("localhost", "127.0.0.1"))
    assert isinstance(error, tf.errors.UnauthenticatedError) and "another cluster token" in error.message
    until(lambda: said)
    assert "it has another cluster token" in said[0]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder, [])
    return folder


@pytest.mark.parametrize("at", ["the server", "the client"])
def test_tls_at_one_end_only_is_told_of_at_both_ends(said, serve, certificates, at):
    tf.fleet.secure(tls=certificates if at == "the server" else None)
    server = serve({"local": ["localhost:0"]})
    tf.fleet.secure(tls=certificates if at == "the client" else None)
    error = waiting_session(server.target.removeprefix("grpc://").replace("localhost", "127.0.0.1"))
    assert isinstance(error, tf.errors.UnauthenticatedError)
    until(lambda: said)
    if at == "the server":
        assert "speaks TLS, and this process does not" in error.message
        assert "it does not speak TLS, and this server does" in said[0]
    else:
        assert "does not speak TLS, and this process does" in error.message
        assert "it speaks TLS, and this server does not" in said[0]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n", b"\x7f garbage"])
@pytest.mark.parametrize("first", [True, False], ids=["speaks first", "answers"])
def test_a_client_with_tls_recognizes_another_program(answering, certificates, answer, first):
    tf.fleet.secure(tls=certificates)
    error = waiting_session(answering(answer, closes=not first, speaks_first=first))
    assert isinstance(error, tf.errors.FailedPreconditionError)
    assert "is not a TensorFleet task, but another program, which does not speak TLS" in error.message


def test_a_web_client_at_a_server_with_tls_is_named(said, serve, certificates):
    tf.fleet.secure(tls=certificates)
    server = serve({"local": ["localhost:0"]})
    assert exchange(server, GRPC)[0] == b""
    until(lambda: said)
    assert "a gRPC client" in said[0]


# -- tokens -------------------------------------------------------------------------------------------


def test_a_token_of_a_few_characters_is_warned_of_once(monkeypatch):
    lines = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: lines.append(text % args))
    monkeypatch.setattr(token, "_warned", set())
    for text in ("short", "short", "x" * 16, "abc"):
        monkeypatch.setenv("TENSORFLEET_TOKEN", text)
        token.token()
    assert len(lines) == 2 and all("characters" in line and "short" not in line.split() for line in lines)
