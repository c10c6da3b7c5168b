"""TensorFlow's own client at a TensorFleet server: it is closed at once, and the server's log says what it was."""

import subprocess
import sys

import pytest

import tensorfleet as tf
from tensorfleet.platform import logging
from tests.support.waiting import until

pytestmark = pytest.mark.peers
SECONDS = 300

CLIENT = """
import sys
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
config = tf.ConfigProto(operation_timeout_in_ms=4000)
try:
    tf.Session(sys.argv[1], config=config).run(tf.constant(1.0))
except tf.errors.OpError as e:
    print("failed with", type(e).__name__)
"""


def test_a_tensorflow_client_is_named_in_the_servers_log(monkeypatch):
    lines = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: lines.append(text % args))
    server = tf.train.Server({"local": ["localhost:0"]})
    try:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, server.target], capture_output=True, text=True, timeout=SECONDS
        )
        until(lambda: lines)
    finally:
        server.stop()
    assert "failed with" in done.stdout, done.stderr
    assert "a gRPC client, such as TensorFlow's own" in lines[0]
    assert "from 127.0.0.1:" in lines[0] or "from [::1]:" in lines[0]


SERVER = """
import sys
import tensorflow.compat.v1 as tf

server = tf.train.Server({"local": [sys.argv[1]]})
print("up", flush=True)
sys.stdin.read()
"""


def test_a_tensorflow_server_is_named_in_the_clients_error():
    from tensorfleet.testing.cluster import free_addresses

    address = free_addresses(local=1)["local"][0]
    run = [sys.executable, "-c", SERVER, address]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "up\n"
            with pytest.raises(tf.errors.FailedPreconditionError, match="a gRPC server, such as TensorFlow"):
                tf.Session(f"grpc://{address}").run(tf.constant(1.0))
        finally:
            process.kill()
