"""A process that forks after it has made servers and sessions: both processes go on, and share no connection."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, random, sys
import tensorfleet as tf

def made():
    # At a port that the system gives to nobody by itself.
    for port in random.SystemRandom().sample(range(20000, 30000), 100):
        try:
            return tf.train.Server({"local": [f"localhost:{port}"]})
        except tf.errors.UnknownError:  # somebody has it
            pass

server = made()
wire = server.target.replace("localhost", "127.0.0.1")
with tf.device("/job:local/task:0"):
    v = tf.Variable(1.0)
    more = v.assign_add(1.0)
beside, far = tf.Session(server.target), tf.Session(wire)
beside.run(v.initializer)
assert far.run(more) == 2.0

if os.fork() == 0:
    for inherited in (beside, far):
        try:
            inherited.run(more)
        except tf.errors.FailedPreconditionError as e:
            print("child:", "Make a session of your own" in e.message, flush=True)
        inherited.close()
    for target in (server.target, wire):
        with tf.Session(target) as own:
            print("child:", own.run(more), flush=True)  # in the parent's server
    server.stop()
    sys.exit(0)  # an end as any other: what is registered for it runs

_, status = os.wait()
print("parent:", status, beside.run(more), far.run(more), flush=True)
with tf.Session(wire) as another:
    print("parent:", another.run(v), flush=True)
ear, mouth = os.pipe()
begun, tell = os.pipe()
if os.fork() == 0:
    os.close(mouth)
    os.write(tell, b"!")
    os.read(ear, 1)  # until the parent has ended
    os._exit(0)
os.read(begun, 1)  # what the child does not need of its parent it closes when it begins
server.stop()
again = tf.train.Server({"local": [server.target.removeprefix("grpc://")]})  # the child does not hold the port
print("parent: again", flush=True)
again.stop()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_after_a_fork_both_processes_go_on():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "child: True",
        "child: True",
        "child: 3.0",
        "child: 4.0",
        "parent: 0 5.0 6.0",
        "parent: 6.0",
        "parent: again",
    ]
