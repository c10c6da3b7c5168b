"""Servers that are told to stop: `join` returns, and nothing is left."""

import subprocess
import sys
import textwrap

import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster, free_addresses
from tests.support.waiting import in_background

SECONDS = 60


def test_a_session_stops_servers_and_their_processes_end():
    with ProcessCluster(ps=2, worker=1) as cluster:
        with tf.device("/job:ps/task:1"):
            v = tf.Variable(1.0)
        with tf.Session(cluster.target("worker", 0)) as sess:
            sess.run(v.initializer)
            assert tf.fleet.stop_server(sess, "/job:ps/task:0") == ["/job:ps/replica:0/task:0"]
            assert cluster.process("ps", 0).wait(SECONDS) == 0
            assert sess.run(v) == 1.0  # the others go on
            assert tf.fleet.stop_server(sess, "/job:ps") == ["/job:ps/replica:0/task:1"]
            assert cluster.process("ps", 1).wait(SECONDS) == 0
            with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)):
                sess.run(v)
        assert tf.fleet.stop_server(cluster.target("worker", 0)) == ["/job:worker/replica:0/task:0"]
        assert cluster.process("worker", 0).wait(SECONDS) == 0
        with pytest.raises(tf.errors.UnavailableError):
            tf.fleet.stop_server(cluster.target("worker", 0))


def test_a_server_of_this_process_is_stopped_and_join_returns(server):
    joined = in_background(server.join)
    assert tf.fleet.stop_server(server.target) == ["/job:local/replica:0/task:0"]
    joined.result(SECONDS)


def test_what_cannot_be_stopped(server):
    with pytest.raises(tf.errors.InvalidArgumentError, match="/job:ps"):
        tf.fleet.stop_server(server.target, "/job:ps")
    with pytest.raises(TypeError, match="grpc://host:port"):
        tf.fleet.stop_server(3)


def test_a_worker_told_to_stop_has_finished_for_the_servers_that_wait_for_it():
    spec = free_addresses(ps=1, worker=1)
    program = textwrap.dedent(f"""
        import sys
        import tensorfleet as tf
        server = tf.train.Server({spec!r}, sys.argv[1], 0)
        print("up", flush=True)
        server.join() if sys.argv[1] == "ps" else sys.stdin.read()
    """)
    run = [sys.executable, "-c", program]
    pipes = {"stdout": subprocess.PIPE, "stdin": subprocess.PIPE}
    with subprocess.Popen([*run, "ps"], **pipes) as ps, subprocess.Popen([*run, "worker"], **pipes) as worker:
        try:
            for one in (ps, worker):
                assert one.stdout.readline() == b"up\n"
            assert tf.fleet.stop_server(f"grpc://{spec['worker'][0]}") == ["/job:worker/replica:0/task:0"]
            assert ps.wait(SECONDS) == 0
            worker.stdin.close()
            assert worker.wait(SECONDS) == 0
        finally:
            ps.kill()
            worker.kill()
