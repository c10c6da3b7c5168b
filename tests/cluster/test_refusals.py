"""Nobody gets in without the token and, where servers ask for one, a certificate: whatever message they come with,
nothing of it is read."""

import shutil
import socket
import ssl
import struct

import pytest

import tensorfleet as tf
from tensorfleet.cli.certificates import make_certificates, sign
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import connection, tls, token
from tensorfleet.cluster.transport import handshake as greeting
from tensorfleet.cluster.transport.token import proof

SECONDS = 20
KINDS = messages.KINDS
SECRET = b"the right one"


@pytest.fixture(autouse=True)
def over_tcp(monkeypatch):
    """Within one machine a local socket would be used, which needs no TLS."""
    monkeypatch.setattr(connection, "has_local_names", lambda: False)
    yield
    tf.fleet.secure()
    tls._contexts.clear()


@pytest.fixture
def parsed(monkeypatch):
    """Counts the connections of which anything beyond the proof was read."""
    seen = []
    real = connection.welcome
    monkeypatch.setattr(connection, "welcome", lambda *args: seen.append(args) or real(*args))
    return seen


@pytest.fixture
def serve():
    made = []

    def start():
        made.append(tf.train.Server.create_local_server())
        return int(made[-1].target.rpartition(":")[2])

    yield start
    for server in made:
        server.stop()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Folders of certificates: the good ones, another authority's, some that are wrong in one way."""
    root = tmp_path_factory.mktemp("certificates")
    make_certificates(root / "good", [])
    make_certificates(root / "stranger", [])
    for name, host, uses, days in (
        ("expired", "localhost", ["server", "client"], -1),
        ("elsewhere", "elsewhere.example", ["server"], 10),
        ("not a server's", "localhost", ["client"], 10),
        ("not a client's", "localhost", ["server"], 10),
    ):
        shutil.copytree(root / "good", root / name)
        sign(root / name, "server", [host], uses, days)
        sign(root / name, "client", [host], uses, days)
    shutil.copytree(root / "good", root / "mixed")
    shutil.copy(root / "stranger" / "client.pem", root / "mixed" / "client.pem")
    shutil.copy(root / "stranger" / "client.key", root / "mixed" / "client.key")
    return root


def frame(kind):
    return struct.pack("<4sBxHIIIQ", b"TFLT", kind, 0, 0, 2, 0, 0) + b"{}"


def plain(port):
    return socket.create_connection(("localhost", port), timeout=SECONDS)


def ends(sock):
    """Whether the other side closes the connection, after whatever it says."""
    try:
        while sock.recv(1 << 16):
            pass
    except (ConnectionError, ssl.SSLError):
        pass
    return True


def answered(sock):
    """Opens as a client does: the two nonces and the server's proof."""
    mine = bytes(range(32))
    sock.sendall(greeting.PREFACE + mine)
    heard, size = b"", greeting.OPENING + greeting.PROOF
    while len(heard) < size:
        more = sock.recv(size - len(heard))
        if not more:
            raise ConnectionError("closed")
        heard += more
    return mine, heard[-64:-32], heard[-32:]


# What somebody without the token may try in its place: the bytes for the proof.
FORGERIES = {
    "no proof": lambda mine, theirs, seen: b"",
    "zeros": lambda mine, theirs, seen: bytes(32),
    "half a proof": lambda mine, theirs, seen: proof(SECRET, b"client", theirs, mine)[:16],
    "another token's proof": lambda mine, theirs, seen: proof(b"another", b"client", theirs, mine),
    "the empty token's proof": lambda mine, theirs, seen: proof(b"", b"client", theirs, mine),
    "the server's proof sent back": lambda mine, theirs, seen: seen,
    "the server's part played": lambda mine, theirs, seen: proof(SECRET, b"server", theirs, mine),
    "a proof of another connection": lambda mine, theirs, seen: proof(SECRET, b"client", bytes(32), mine),
    "the nonces the other way round": lambda mine, theirs, seen: proof(SECRET, b"client", mine, theirs),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_wrong_token_is_refused_before_anything_is_read(serve, parsed, monkeypatch, forgery):
    monkeypatch.setenv("TENSORFLEET_TOKEN", SECRET.decode())
    port = serve()
    for kind in KINDS:
        with plain(port) as sock:
            mine, theirs, seen = answered(sock)
            try:
                sock.sendall((FORGERIES[forgery](mine, theirs, seen) + frame(kind)).ljust(64, b"\0"))
            except ConnectionError:
                continue
            assert ends(sock)
    assert not parsed
    channel, _ = connection.connect(f"localhost:{port}", SECRET, messages.Hello("test"), SECONDS)
    channel.close()
    assert parsed


@pytest.mark.parametrize(
    "shown",
    ["no TLS", "no certificate", "stranger", "expired", "mixed", "not a client's", "an old TLS"],
)
def test_a_wrong_certificate_is_refused_before_anything_is_read(
    serve, parsed, monkeypatch, certificates, shown
):
    monkeypatch.setenv("TENSORFLEET_TOKEN", SECRET.decode())
    tf.fleet.secure(tls=certificates / "good", mutual=True)
    port = serve()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificates / "good" / "ca.pem")
    if (certificates / shown).is_dir():
        context.load_cert_chain(certificates / shown / "client.pem", certificates / shown / "client.key")
    if shown == "an old TLS":
        context.load_cert_chain(certificates / "good" / "client.pem", certificates / "good" / "client.key")
        with pytest.warns(DeprecationWarning):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    for kind in KINDS:
        with plain(port) as raw:
            try:
                sock = raw if shown == "no TLS" else context.wrap_socket(raw, server_hostname="localhost")
                with sock:
                    mine, theirs, _ = answered(sock)
                    sock.sendall(proof(SECRET, b"client", theirs, mine) + frame(kind))
                    assert ends(sock)
            except (ConnectionError, ssl.SSLError):
                continue  # in the handshake already
    assert not parsed
    channel, _ = connection.connect(f"localhost:{port}", SECRET, messages.Hello("test"), SECONDS)
    channel.close()
    assert parsed


@pytest.mark.parametrize("shown", ["stranger", "expired", "elsewhere", "not a server's"])
def test_a_client_refuses_a_server_with_a_wrong_certificate(serve, monkeypatch, certificates, shown):
    tf.fleet.secure(token=SECRET, tls=certificates / shown)
    port = serve()
    tf.fleet.secure(token=SECRET, tls=certificates / "good")
    with pytest.raises(tf.errors.UnauthenticatedError, match="tensorfleet certs"):
        connection.connect(f"localhost:{port}", SECRET, messages.Hello("test"), SECONDS)


@pytest.mark.parametrize("mutual", [False, True])
def test_a_cluster_over_tls(certificates, mutual):
    tf.fleet.secure(token="a secret", tls=certificates / "good", mutual=mutual)
    workers, servers = tf.test.create_local_cluster(num_workers=1, num_ps=1)
    try:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(tf.zeros([300, 1000]))
            more = v.assign_add(tf.ones([300, 1000]))
        with tf.Session(workers[0].target) as sess:
            sess.run(v.initializer)
            for _ in range(3):
                sess.run(more.op)
            assert sess.run(tf.reduce_sum(v)) == 900_000
            assert sess.run(v).sum() == 900_000
    finally:
        for server in (*workers, *servers):
            server.stop()


def test_tls_at_one_end_only_is_an_error(serve, monkeypatch, certificates):
    tf.fleet.secure(token=SECRET, tls=certificates / "good")
    secured = serve()
    tf.fleet.secure(token=SECRET)
    with pytest.raises(tf.errors.UnauthenticatedError, match="speaks TLS, and this process does not"):
        connection.connect(f"localhost:{secured}", SECRET, messages.Hello("test"), SECONDS)
    plain_one = serve()
    tf.fleet.secure(token=SECRET, tls=certificates / "good")
    with pytest.raises(tf.errors.UnauthenticatedError, match="does not speak TLS, and this process does"):
        connection.connect(f"localhost:{plain_one}", SECRET, messages.Hello("test"), SECONDS)


def test_a_private_key_that_others_can_read_is_not_used(certificates, tmp_path):
    shutil.copytree(certificates / "good", tmp_path / "certs")
    (tmp_path / "certs" / "server.key").chmod(0o644)
    tf.fleet.secure(tls=tmp_path / "certs")
    with pytest.raises(tf.errors.PermissionDeniedError, match="chmod 600"):
        tf.train.Server.create_local_server()


def test_certificates_that_are_not_there(tmp_path):
    tf.fleet.secure(tls=tmp_path)
    with pytest.raises(tf.errors.FailedPreconditionError, match="tensorfleet certs"):
        tf.train.Server.create_local_server()


def test_a_token_set_in_the_program_goes_before_the_environments(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_TOKEN", "environment")
    assert token.token() == b"environment"
    tf.fleet.secure(token="program")
    assert token.token() == b"program" and token.configured()
    tf.fleet.secure()
    assert token.token() == b"environment"
