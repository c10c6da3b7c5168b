"""`tf.train.Saver(incremental=...)`: checkpoints that have only what changed."""

import os
import signal
import textwrap

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing import fork_server
from tensorfleet.testing.cluster import ProcessCluster
from tensorfleet.testing.fault_points import FaultPoints
from tests.support.sessions import initialized

ROWS = 4000
SECONDS = 60


def size(path):
    """The bytes of a checkpoint's data."""
    folder, name = os.path.split(path)
    files = [f for f in os.listdir(folder) if f.startswith(f"{name}.data")]
    return sum(os.path.getsize(os.path.join(folder, f)) for f in files)


class Model:
    """A table of embeddings that Adam trains by rows, a dense layer, and words."""

    def __init__(self, partitions=1, uses_resource=False):
        cut = tf.fixed_size_partitioner(partitions) if partitions > 1 else None
        with tf.variable_scope("model", use_resource=uses_resource):
            self.table = tf.get_variable(
                "table", [ROWS, 8], initializer=tf.random_normal_initializer(seed=1), partitioner=cut
            )
            self.dense = tf.get_variable("dense", [8, 3], initializer=tf.ones_initializer())
        self.words = tf.Variable(["a", "b"], name="words")
        self.ids = tf.placeholder(tf.int64, [None])
        rows = tf.nn.embedding_lookup(self.table, self.ids, partition_strategy="div")
        loss = tf.reduce_sum(tf.square(tf.matmul(rows, self.dense)))
        self.step = tf.train.get_or_create_global_step()
        parts = list(self.table) if cut else [self.table]
        optimizer = tf.train.AdagradOptimizer(0.1)
        self.train = optimizer.minimize(loss, global_step=self.step, var_list=parts)
        self.all = tf.global_variables()


@pytest.mark.parametrize("uses_resource", [False, True])
@pytest.mark.parametrize("partitions", [1, 3])
def test_each_checkpoint_of_a_chain_restores_exactly(tmp_path, partitions, uses_resource):
    model = Model(partitions, uses_resource)
    saver = tf.train.Saver(incremental=4, max_to_keep=0)
    saved, chance = {}, np.random.RandomState(0)
    with initialized() as session:
        for n in range(10):
            path = saver.save(session, str(tmp_path / "model"), n, write_meta_graph=False)
            saved[path] = session.run(model.all)
            if n == 5:
                session.run(tf.assign(model.words, ["c", "de"]).op)
            session.run(model.train, {model.ids: chance.randint(0, ROWS, 20)})
    sizes = [size(path) for path in saved]
    assert all(s > ROWS * 8 * 4 for s in sizes[::4])
    assert all(s < ROWS * 8 for n, s in enumerate(sizes) if n % 4)
    for path, values in saved.items():
        with tf.Session() as fresh:
            saver.restore(fresh, path)
            for value, wanted in zip(fresh.run(model.all), values, strict=True):
                np.testing.assert_array_equal(value, wanted)


def test_parts_are_restored_from_a_chain_with_other_parts(tmp_path):
    whole = np.arange(ROWS * 8, dtype=np.float32).reshape(ROWS, 8)
    with tf.Graph().as_default():
        cut = tf.fixed_size_partitioner(3)
        v = tf.get_variable("v", [ROWS, 8], initializer=tf.zeros_initializer(), partitioner=cut)
        saver = tf.train.Saver(incremental=9)
        with initialized() as session:
            session.run(v.assign(whole))
            saver.save(session, str(tmp_path / "model"), 0)
            for n, part in enumerate(list(v)):
                session.run(tf.scatter_update(part, [n, 5], -np.ones((2, 8), np.float32)).op)
                path = saver.save(session, str(tmp_path / "model"), n + 1)
            wanted = session.run(v.as_tensor())
    np.testing.assert_array_equal(tf.train.load_variable(path, "v"), wanted)
    v = tf.get_variable(
        "v", [ROWS, 8], initializer=tf.zeros_initializer(), partitioner=tf.fixed_size_partitioner(2, axis=1)
    )
    with tf.Session() as session:
        tf.train.Saver([v]).restore(session, path)
        np.testing.assert_array_equal(session.run(v.as_tensor()), wanted)


def test_bits_that_are_no_numbers_are_saved_when_they_change_and_only_then(tmp_path):
    values = np.zeros((ROWS, 4), np.float32)
    values[7] = np.nan
    given = tf.placeholder(tf.float32, values.shape)
    v = tf.get_variable("v", initializer=values)
    put = v.assign(given).op
    saver = tf.train.Saver(incremental=9)
    with initialized() as session:
        saver.save(session, str(tmp_path / "model"), 0)
        same = saver.save(session, str(tmp_path / "model"), 1)
        assert size(same) < 500
        values[9] = -0.0
        session.run(put, {given: values})
        path = saver.save(session, str(tmp_path / "model"), 2)
    found = tf.train.load_variable(path, "v")
    np.testing.assert_array_equal(found.view(np.uint32), values.view(np.uint32))


def test_every_task_of_a_cluster_saves_what_changed_there(tmp_path):
    with ProcessCluster(ps=2, worker=1) as cluster:
        variables = []
        for n in range(2):
            with tf.device(f"/job:ps/task:{n}"):
                variables.append(tf.get_variable(f"v{n}", [ROWS, 8], initializer=tf.zeros_initializer()))
        with tf.device("/job:ps/task:1"):
            touch = tf.scatter_add(variables[1], [3], np.ones((1, 8), np.float32)).op
        saver = tf.train.Saver(incremental=5, sharded=True)
        with tf.Session(cluster.target("worker", 0)) as session:
            session.run([v.initializer for v in variables])
            first = saver.save(session, str(tmp_path / "model"), 0)
            session.run(touch)
            second = saver.save(session, str(tmp_path / "model"), 1)
            cluster.kill("ps", 1)
        assert size(second) < size(first) / 100
        cluster.start("ps", 1)
        with tf.Session(cluster.target("worker", 0)) as session:
            saver.restore(session, second)
            assert session.run(variables[1])[3].tolist() == [1.0] * 8
            third = saver.save(session, str(tmp_path / "model"), 2)  # nobody remembers: it is full
        assert size(third) == size(first)
        assert tf.train.load_variable(third, "v1").sum() == 8


def test_a_checkpoint_that_others_need_is_deleted_with_the_last_of_them(tmp_path):
    v = tf.get_variable("v", initializer=0)
    more = v.assign_add(1)
    saver = tf.train.Saver(incremental=3, max_to_keep=2)
    kept = []
    with initialized() as session:
        for n in range(7):
            session.run(more)
            saver.save(session, str(tmp_path / "model"), n, write_meta_graph=False)
            kept.append([m for m in range(7) if (tmp_path / f"model-{m}.index").exists()])
    assert kept == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [3, 4], [3, 4, 5], [3, 4, 5, 6]]
    assert saver.last_checkpoints == [str(tmp_path / f"model-{n}") for n in (5, 6)]


def test_a_save_over_one_that_the_chain_needs_is_full(tmp_path):
    v = tf.get_variable("v", initializer=np.zeros((ROWS, 4), np.float32))
    saver = tf.train.Saver(incremental=9)
    with initialized() as session:
        sizes = [size(saver.save(session, str(tmp_path / "model"), n)) for n in (0, 1, 0, 1)]
        assert [s > ROWS for s in sizes] == [True, False, True, False]
        saver.restore(session, str(tmp_path / "model-1"))
        assert session.run(v).sum() == 0


@pytest.fixture
def chain(tmp_path):
    """A Saver, and its full checkpoint with two incremental ones."""
    v = tf.get_variable("v", initializer=np.zeros((ROWS, 4), np.float32))
    more = tf.scatter_add(v, [1], np.ones((1, 4), np.float32)).op
    saver, paths = tf.train.Saver(incremental=9), []
    with initialized() as session:
        for n in range(3):
            session.run(more)
            paths.append(saver.save(session, str(tmp_path / "model"), n, write_meta_graph=False))
    return saver, paths


def restoring(saver, path, kind, text):
    with tf.Session() as session, pytest.raises(kind, match=text):
        saver.restore(session, path)


def test_a_missing_link_is_named(chain):
    saver, paths = chain
    os.remove(f"{paths[1]}.index")
    text = "model-2 has only what changed since .*model-1, which is missing. Put its files back, or restore an older"
    restoring(saver, paths[2], tf.errors.DataLossError, text)
    with tf.Session() as session:
        saver.restore(session, paths[0])


def test_a_link_that_was_written_again_is_named(chain):
    saver, paths = chain
    with tf.Graph().as_default():
        tf.get_variable("v", initializer=np.ones((ROWS, 4), np.float32))
        with initialized() as session:
            tf.train.Saver().save(session, paths[0])
    text = (
        "model-1 has only what changed since .*model-0, but that was written again since then, or is damaged"
    )
    restoring(saver, paths[2], tf.errors.DataLossError, text)


def test_damaged_bytes_of_a_link_are_found(chain):
    saver, paths = chain
    data = f"{paths[0]}.data-00000-of-00001"
    with open(data, "r+b") as file:
        file.seek(100)
        file.write(b"x")
    restoring(saver, paths[2], tf.errors.DataLossError, "model-0 .*Checksum does not match")


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "3"])
def test_a_number_of_saves_that_makes_no_sense_is_refused(wrong):
    tf.get_variable("v", initializer=0)
    with pytest.raises(ValueError, match="give a number from 1 on. With 10, each tenth checkpoint is full"):
        tf.train.Saver(incremental=wrong)


def test_operations_of_somebody_else_cannot_be_made_incremental():
    tf.get_variable("v", initializer=0)
    saver_def = tf.train.Saver().as_saver_def()
    with pytest.raises(ValueError, match="incremental needs the Saver's own operations"):
        tf.train.Saver(saver_def=saver_def, incremental=3)


SAVES = """
    import sys
    import numpy as np
    import tensorfleet as tf
    from tensorfleet.testing import fault_points

    points, path = sys.argv[1:]
    v = tf.get_variable("v", initializer=np.zeros((4000, 4), np.float32))
    more = tf.scatter_add(v, [1], np.ones((1, 4), np.float32)).op
    saver = tf.train.Saver(incremental=2, max_to_keep=1)
    with tf.Session() as sess:
        sess.run(v.initializer)
        saver.save(sess, path, 0, write_meta_graph=False)
        fault_points.watch(points)
        for n in range(1, 4):
            sess.run(more)
            saver.save(sess, path, n, write_meta_graph=False)
"""


def test_a_process_killed_at_any_write_leaves_a_checkpoint_that_restores(tmp_path):
    script = tmp_path / "saves.py"
    script.write_text(textwrap.dedent(SAVES))
    points = FaultPoints(tmp_path / "points")
    nth, found = 1, []
    while True:
        folder = tmp_path / str(nth)
        folder.mkdir()
        points.arm(nth)
        arguments = [points.path, str(folder / "model")]
        child = fork_server.start("saves", script=str(script), arguments=arguments, env=dict(os.environ))
        code = child.wait(SECONDS)
        path = tf.train.latest_checkpoint(str(folder))
        value = tf.train.load_variable(path, "v")
        assert value[1].tolist() == [float(path.rpartition("-")[2])] * 4
        assert value.sum() == 4 * value[1][0]
        found.append(path.rpartition("-")[2])
        if points.is_armed:
            break
        assert code == -signal.SIGKILL
        nth += 1
    points.close()
    assert code == 0
    assert sorted(set(found)) == ["0", "1", "2", "3"]
