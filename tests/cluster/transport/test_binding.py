"""Where a server listens and where it is reached: names, addresses and ports that are not the same at both ends."""

import socket
import textwrap

import pytest

import tensorfleet as tf
from tensorfleet.base import logging
from tensorfleet.cluster.transport import binding, connection
from tensorfleet.testing.cluster import free_ports
from tensorfleet.testing.proxy import Proxy
from tests.support.tasks import read_until
from tests.support.waiting import in_background

SECONDS = 60


@pytest.fixture(autouse=True)
def a_cluster_of_several_machines(monkeypatch):
    """As between machines: a token that somebody chose, and no local sockets."""
    monkeypatch.setenv("TENSORFLEET_TOKEN", "the secret of a test of addresses")
    monkeypatch.setattr(connection, "has_local_names", lambda: False)


@pytest.fixture
def names(monkeypatch):
    """What names stand for; those that are not in it do not resolve."""
    known, resolve = {}, socket.getaddrinfo

    def look_up(host, port, *args, **kwargs):
        if str(host).endswith(".test"):
            if kwargs.get("flags"):
                raise socket.gaierror(socket.EAI_NONAME, "not a number")
            if host not in known:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            host = known[host]
        return resolve(host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return known


def bound(server):
    return [sock.getsockname()[:2] for sock in server._sockets]


def doubled(target):
    """A step on the task behind a target, with a value that has to get there."""
    x = tf.placeholder(tf.float32, [])
    with tf.Session(target) as sess:
        return sess.run(x * 2.0, {x: 3.0})


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("", ("task.test", 2222)),
        ("0.0.0.0", ("0.0.0.0", 2222)),
        ("0.0.0.0:3333", ("0.0.0.0", 3333)),
        ("::", ("::", 2222)),
        ("[::]", ("::", 2222)),
        ("[::1]:3333", ("::1", 3333)),
        (" some.host : 3333 ", ("some.host", 3333)),
    ],
)
def test_a_place_to_listen_is_a_host_or_a_host_and_a_port(monkeypatch, given, place):
    monkeypatch.setenv("TENSORFLEET_BIND", given)
    assert binding.place("task.test", 2222) == place


@pytest.mark.parametrize("given", ["host:", ":3333", "host:port", "host:70000"])
def test_a_place_that_is_none_is_refused(monkeypatch, given):
    monkeypatch.setenv("TENSORFLEET_BIND", given)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f'TENSORFLEET_BIND is "{given}"'):
        tf.train.Server({"local": ["localhost:0"]})


def test_a_server_listens_where_it_is_told_and_is_called_by_its_address(serve, monkeypatch, names):
    monkeypatch.setenv("TENSORFLEET_BIND", "127.0.0.7")
    (port,) = free_ports(1)
    server = serve({"local": [f"task.test:{port}"]})  # a name that this machine itself does not know
    assert bound(server) == [("127.0.0.7", port)]
    assert server.target == f"grpc://task.test:{port}"
    assert doubled(f"grpc://127.0.0.7:{port}") == 6.0
    names["other.test"] = "127.0.0.7"
    assert doubled(f"grpc://other.test:{port}") == 6.0


def test_a_port_that_the_system_chose_is_part_of_the_address(serve, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_BIND", "127.0.0.7")
    server = serve({"local": ["localhost:0"]})
    ((host, port),) = bound(server)
    assert host == "127.0.0.7" and server.target == f"grpc://localhost:{port}"


def test_listening_beyond_this_machine_needs_a_token_wherever_that_is_said(monkeypatch):
    monkeypatch.delenv("TENSORFLEET_TOKEN")
    monkeypatch.setenv("TENSORFLEET_BIND", "0.0.0.0")
    with pytest.raises(tf.errors.FailedPreconditionError, match="would listen at 0.0.0.0:2222"):
        tf.train.Server({"local": ["localhost:2222"]})


def test_an_address_of_another_machine_is_answered_with_how_to_listen_for_it():
    with pytest.raises(
        tf.errors.UnknownError, match="not an address of this machine.*TENSORFLEET_BIND=0.0.0.0"
    ):
        tf.train.Server({"local": ["192.0.2.1:2222"]})


@pytest.fixture
def mapped(serve, monkeypatch):
    """A task that is reached at another port than it listens at, and knows itself by a name that clients do not know."""
    inside, told = free_ports(2)
    monkeypatch.setenv("TENSORFLEET_BIND", f"127.0.0.1:{inside}")
    server = serve({"ps": [f"inside.test:{told}"]})
    with Proxy(f"127.0.0.1:{inside}", quiet=True) as forwarder:
        yield server, forwarder


def test_a_client_keeps_the_address_that_it_dialled(mapped, names):
    server, forwarder = mapped
    target = f"grpc://{forwarder.address}"
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0)
        more = v.assign_add(1.0)
    with tf.Session(target) as sess:
        sess.run(v.initializer)
        assert sess.run(more) == 2.0
        forwarder.cut()
        with pytest.raises(tf.errors.UnavailableError, match=forwarder.address):
            for _ in range(2):
                sess.run(more)
    with tf.Session(target) as sess:  # dials the same again
        assert sess.run(more) >= 3.0
    tf.Session.reset(target)
    with tf.Session(target) as sess, pytest.raises(tf.errors.FailedPreconditionError):
        sess.run(v)
    assert tf.fleet.stop_server(target) == ["/job:ps/replica:0/task:0"]


def test_a_server_waits_for_its_own_name_and_says_so(serve, names, monkeypatch):
    lines = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: lines.append(text % args))
    monkeypatch.setattr(binding, "_LOG_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(binding, "_RETRY_SECONDS", 0.01)
    (port,) = free_ports(1)
    starting = in_background(serve, {"local": [f"late.test:{port}"]})
    with pytest.raises(TimeoutError):
        starting.result(0.2)
    names["late.test"] = "127.0.0.1"
    assert bound(starting.result(SECONDS)) == [("127.0.0.1", port)]
    assert lines and "waits for the name late.test to resolve" in lines[0]
    assert "Name or service not known" in lines[0]


def test_a_name_that_never_resolves_is_waited_for_no_longer_than_the_limit(names, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_WAIT_SECONDS", "0.1")
    with pytest.raises(
        tf.errors.DeadlineExceededError, match="name never.test of /job:local.*TENSORFLEET_BIND"
    ):
        tf.train.Server({"local": ["never.test:2222"]})


def test_a_session_waits_for_a_name_that_does_not_resolve_yet(serve, names):
    server = serve({"local": ["127.0.0.1:0"]})
    port = server.target.rpartition(":")[2]
    graph = tf.get_default_graph()

    def run():
        with graph.as_default():
            return doubled(f"grpc://late.test:{port}")

    waiting = in_background(run)
    with pytest.raises(TimeoutError):
        waiting.result(0.2)
    names["late.test"] = "127.0.0.1"
    assert waiting.result(SECONDS) == 6.0


TASK = """
    import socket, sys
    import tensorfleet as tf

    resolve = socket.getaddrinfo

    def look_up(host, port, *args, **kwargs):  # names as one machine of a cluster knows them
        if str(host).endswith(".test"):
            if kwargs.get("flags"):
                raise socket.gaierror(socket.EAI_NONAME, "not a number")
            host = "127.0.0.1"
        return resolve(host, port, *args, **kwargs)

    socket.getaddrinfo = look_up
    spec = {"ps": [sys.argv[2]], "worker": [sys.argv[3]]}
    server = tf.train.Server(spec, sys.argv[1], 0)
    print("up at", server._sockets[0].getsockname()[1], flush=True)
    if sys.argv[1] == "ps":
        server.join()
    else:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable([1.0, 2.0])
        with tf.device("/job:worker/task:0"):
            y = v * 2.0
        with tf.Session(server.target) as sess:
            sess.run(v.initializer)
            print("y is", sess.run(y), flush=True)
"""


def test_a_cluster_behind_a_port_map(tasks, tmp_path, monkeypatch):
    """Two processes that know each other by names and by ports at which neither of them listens."""
    script = tmp_path / "task.py"
    script.write_text(textwrap.dedent(TASK))
    ps, worker = free_ports(2)
    with Proxy(f"127.0.0.1:{ps}", quiet=True) as to_ps, Proxy(f"127.0.0.1:{worker}", quiet=True) as to_worker:
        ports = [one.address.rpartition(":")[2] for one in (to_ps, to_worker)]
        addresses = [f"{name}.test:{port}" for name, port in zip(("ps", "worker"), ports, strict=True)]
        started = {}
        for job, port in (("ps", ps), ("worker", worker)):
            monkeypatch.setenv("TENSORFLEET_BIND", f"127.0.0.1:{port}")
            started[job] = tasks.start(script, job, *addresses)
        assert read_until(started["ps"], lambda line: f"up at {ps}" in line)
        assert read_until(started["worker"], lambda line: "y is [2. 4.]" in line)
        assert started["worker"].wait(SECONDS) == 0
        assert started["ps"].wait(SECONDS) == 0  # it was told that the worker has finished
