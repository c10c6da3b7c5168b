"""A sharded checkpoint is restored by all parameter servers at once."""

import shutil

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.waiting import in_background, until

SECONDS = 120
ROWS = 1 << 17  # of 1024 numbers of four bytes: 512 MB


def tables(rows):
    """A variable on each of two parameter servers, and an operation that gives each row its number."""
    found, filled = [], []
    for n in range(2):
        with tf.device(f"/job:ps/task:{n}"):
            v = tf.get_variable(f"v{n}", [rows, 1024], initializer=tf.zeros_initializer())
            numbers = tf.reshape(tf.range(rows, dtype=tf.float32), [rows, 1]) + n
            found.append(v)
            filled.append(tf.assign(v, tf.tile(numbers, [1, 1024])).op)
    return found, filled


def test_a_server_restores_while_another_one_has_not_begun(tmp_path):
    variables, fill = tables(64)
    saver = tf.train.Saver(sharded=True)
    zero = [v.assign(tf.zeros_like(v)).op for v in variables]
    row = tf.gather(variables[1], 5)
    with ProcessCluster(ps=2, worker=1) as cluster, tf.Session(cluster.target("worker", 0)) as session:
        session.run(fill)
        path = saver.save(session, str(tmp_path / "model"))
        session.run(zero)
        saver.restore(session, path)  # the plan is made
        session.run(zero)
        assert session.run(row)[0] == 0
        cluster.stop("ps", 0)
        try:
            restored = in_background(saver.restore, session, path)
            until(lambda: session.run(row)[0] == 6, "ps/1 restores")
            assert not restored.done()
        finally:
            cluster.resume("ps", 0)
        restored.result(SECONDS)
        assert session.run(variables[0])[5, 0] == 5


@pytest.mark.large
def test_a_gigabyte_on_two_servers_is_saved_and_restored(tmp_path):
    variables, fill = tables(ROWS)
    ends = [tf.gather(v, [0, ROWS - 1]) for v in variables]
    saver = tf.train.Saver(sharded=True)
    with ProcessCluster(ps=2, worker=1) as cluster:
        with tf.Session(cluster.target("worker", 0)) as session:
            session.run(fill)
            path = saver.save(session, str(tmp_path / "model"), write_meta_graph=False)
        for n in range(2):
            cluster.kill("ps", n)
            cluster.start("ps", n)
        with tf.Session(cluster.target("worker", 0)) as session:
            saver.restore(session, path)
            for n, values in enumerate(session.run(ends)):
                np.testing.assert_array_equal(values[:, 0], [n, ROWS - 1 + n])
    shutil.rmtree(tmp_path)
