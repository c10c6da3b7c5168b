"""Clusters of processes for tests: whatever is done to them is done to the right one, and nothing is left."""

import os
import subprocess

import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import FaultHook, ProcessCluster


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_nothing_is_left_of_a_cluster():
    with ProcessCluster(ps=1, worker=2) as cluster:
        pids = [cluster.process(*task).pid for task in (("ps", 0), ("worker", 0), ("worker", 1))]
        assert all(map(is_there, pids)) and len(set(pids)) == 3
        cluster.stop("worker", 1)
    assert not any(map(is_there, pids))


def test_a_task_that_cannot_start_is_named():
    with pytest.raises(RuntimeError, match="worker/0 ended with code 1"):
        with ProcessCluster(worker=1, env={"TENSORFLEET_TLS": "/nowhere"}):
            pass


def test_scripts_run_beside_the_tasks(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, tensorfleet\nsys.exit(int(sys.argv[1]))\n")
    with ProcessCluster(worker=1) as cluster:
        assert cluster.script(script, "3").wait(60) == 3
        waiting = tmp_path / "waiting.py"
        waiting.write_text("import threading\nthreading.Event().wait(1000)\n")
        child = cluster.script(waiting)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.1)
    assert child.returncode is not None


def test_tasks_behind_a_network_are_reached_through_it():
    with ProcessCluster(ps=1, worker=1, proxied=[("ps", 0)]) as cluster:
        assert cluster.cluster["ps"][0] == cluster.network("ps", 0).address
        assert cluster.spec("ps", 0)["ps"][0] != cluster.cluster["ps"][0]
        with tf.Graph().as_default():
            with tf.device("/job:ps"):
                v = tf.Variable(2.0)
            with tf.Session(cluster.target("worker", 0)) as sess:
                sess.run(v.initializer)
                assert sess.run(v) == 2.0
                cluster.network("ps", 0).cut()
                with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)):
                    for _ in range(100):
                        sess.run(v)
            with tf.Session(cluster.target("worker", 0)) as sess:
                assert sess.run(v) == 2.0  # it never stopped


def test_faults_at_a_step():
    done = []
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        more = tf.assign_add(step, 1)
        hook = FaultHook({2: lambda: done.append("two"), 4: lambda: done.append("four")})
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as sess:
            for _ in range(3):
                sess.run(more)
            assert done == ["two"]
            sess.run(more)
    assert done == ["two", "four"] and hook.runs == 4
