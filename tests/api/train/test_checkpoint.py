"""Checkpoints of objects: found by what holds them."""

import numpy as np
import pytest

import tensorfleet as tf


class Net(tf.Module):
    def __init__(self, name=None, value=1.0):
        super().__init__(name)
        self.w = tf.Variable([value, 2.0 * value], name="anything")
        self.parts = [tf.Variable(3.0 * value), {"deep": tf.Variable(4.0 * value, use_resource=True)}]
        self.layer = tf.layers.Dense(1, kernel_initializer=tf.constant_initializer(value))
        self.layer(tf.ones([1, 2]))


def program(value=1.0, optimizer=True):
    net = Net(value=value)
    step = tf.train.get_or_create_global_step()
    loss = tf.reduce_sum(net.w) ** 2
    opt = tf.train.AdamOptimizer(0.1) if optimizer else None
    train = opt.minimize(loss, step) if opt else None
    held = {"net": net, "step": step, **({"opt": opt} if opt else {})}
    return net, opt, train, tf.train.Checkpoint(**held)


@pytest.fixture
def saved(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        net, opt, train, checkpoint = program()
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = checkpoint.save(str(tmp_path / "ckpt"))
        return path, session.run([net.w, opt.get_slot(net.w, "m")])


def test_names_in_the_checkpoint_are_the_attributes(saved):
    path, _ = saved
    assert path.endswith("ckpt-1") and tf.train.latest_checkpoint(path.rsplit("/", 1)[0]) == path
    names = [name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE") for name, _ in tf.train.list_variables(path)]
    assert names == [
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        "net/layer/bias",
        "net/layer/kernel",
        "net/parts/0",
        "net/parts/1/deep",
        "net/w",
        "net/w/.OPTIMIZER_SLOT/opt/m",
        "net/w/.OPTIMIZER_SLOT/opt/v",
        "opt/beta1_power",
        "opt/beta2_power",
        "save_counter",
        "step",
    ]


def test_everything_comes_back_under_other_names(saved, session):
    path, (w, m) = saved
    tf.Variable(0.0, name="anything")  # takes the name the variable had
    net, opt, _, checkpoint = program(value=7.0)
    status = checkpoint.restore(path)
    status.assert_consumed().assert_existing_objects_matched().assert_nontrivial_match()
    status.initialize_or_restore(session)
    np.testing.assert_array_equal(session.run(net.w), w)
    np.testing.assert_array_equal(session.run(opt.get_slot(net.w, "m")), m)
    assert session.run([tf.train.get_global_step(), checkpoint.save_counter]) == [1, 1]
    assert checkpoint.save(path.replace("ckpt-1", "next"), session=session).endswith("next-2")


def test_what_is_made_after_restore_counts_too(saved):
    path, (w, _) = saved
    net = tf.Module("holder")
    checkpoint = tf.train.Checkpoint(net=net)
    status = checkpoint.restore(path)
    net.w = tf.Variable([0.0, 0.0])
    net.other = tf.Variable(5.0)
    with tf.Session() as session:
        status.initialize_or_restore(session)
        np.testing.assert_array_equal(session.run(net.w), w)
        assert session.run(net.other) == 5.0
    with pytest.raises(AssertionError, match="not assigned a value from checkpoint"):
        status.assert_existing_objects_matched()


def test_a_part_of_a_checkpoint_may_be_restored(saved, session):
    path, (w, _) = saved
    net, _, _, checkpoint = program(value=7.0, optimizer=False)
    status = checkpoint.restore(path)
    status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match="Unresolved object in checkpoint"):
        status.assert_consumed()
    status.expect_partial().run_restore_ops(session)
    np.testing.assert_array_equal(session.run(net.w), w)


def test_without_a_checkpoint_variables_start(tmp_path, session):
    net, _, _, checkpoint = program()
    status = checkpoint.restore(tf.train.latest_checkpoint(str(tmp_path)))
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        status.assert_consumed()
    status.initialize_or_restore(session)
    assert session.run(net.w).tolist() == [1.0, 2.0]


def test_checkpoints_of_a_saver_are_read_by_name(tmp_path, session):
    v = tf.get_variable("v", initializer=3.0)
    checkpoint = tf.train.Checkpoint(any=v)
    session.run(v.initializer)
    path = tf.train.Saver([v]).save(session, str(tmp_path / "old"))
    session.run(v.assign(0.0))
    checkpoint.restore(path).assert_consumed().run_restore_ops(session)
    assert session.run(v) == 3.0


def test_a_manager_keeps_the_last_ones(tmp_path):
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.checkpoints == []
    with tf.Session() as session:
        session.run(v.initializer)
        for _ in range(3):
            manager.save()
        names = [p.rsplit("/", 1)[1] for p in manager.checkpoints]
        assert names == ["ckpt-2", "ckpt-3"]
        assert manager.save(checkpoint_number=9).endswith("ckpt-9")
    assert not (tmp_path / "ckpt-1.index").exists()
    again = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=2)
    assert again.checkpoints == manager.checkpoints
    assert again.latest_checkpoint == tf.train.latest_checkpoint(str(tmp_path))
    with pytest.raises(ValueError, match="positive integer or `None`"):
        tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=0)


def test_write_neither_counts_nor_marks_as_latest(tmp_path):
    v = tf.Variable(1.0)
    with tf.Session() as session:
        session.run(v.initializer)
        path = tf.train.Checkpoint(v=v).write(str(tmp_path / "exact"), session=session)
    assert path == str(tmp_path / "exact")
    assert tf.train.latest_checkpoint(str(tmp_path)) is None


def test_only_objects_are_saved():
    with pytest.raises(ValueError, match="was expecting a trackable object"):
        tf.train.Checkpoint(number=3)


def test_a_manager_leaves_checkpoints_that_none_wrote_alone(tmp_path, caplog):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first = checkpoint.save(str(tmp_path / "mine"))
        manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=1)
        assert (manager.latest_checkpoint, manager.checkpoints) == (first, [])
        manager.save()
        second = manager.save()
        assert manager.checkpoints == [second]
        assert tf.train.checkpoint_exists(first)
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=1).checkpoints == [second]
    state.last_preserved_timestamp += 1e12
    (tmp_path / "checkpoint").write_text(str(state))
    tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=1)
    assert "behind the last preserved checkpoint" in caplog.text


@pytest.mark.parametrize("dense", [True, False])
def test_a_table_whose_entries_come_and_go_is_saved_by_savers_and_checkpoints(tmp_path, dense):
    if dense:
        table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, -2, name="t")
    else:
        table = tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1, name="t")
    insert = table.insert(tf.constant([11, 12], tf.int64), tf.constant([1, 2], tf.int64))
    remove = table.remove(tf.constant([11], tf.int64))
    saver, checkpoint = tf.train.Saver([table]), tf.train.Checkpoint(table=table)
    with tf.Session() as sess:
        sess.run(insert)
        by_saver = saver.save(sess, str(tmp_path / "saver"))
        by_checkpoint = checkpoint.save(str(tmp_path / "checkpoint"), session=sess)
        sess.run(remove)
        assert sess.run(table.size()) == 1
        saver.restore(sess, by_saver)
        assert sess.run(table.size()) == 2
        sess.run(remove)
        checkpoint.restore(by_checkpoint).assert_consumed().run_restore_ops(sess)
        assert sess.run(table.lookup(tf.constant([11], tf.int64))) == [1]
    assert [name for name, _ in tf.train.list_variables(by_saver)] == ["t-keys", "t-values"]


class Hidden(tf.Module):
    def __init__(self):
        super().__init__()
        self._weight = tf.Variable(1.0)
        self._parts = [tf.layers.Dense(1)]
        self._parts[0](tf.ones([1, 2]))


class Scaled(tf.layers.Layer):
    def build(self, input_shape):
        self._scale = self.add_variable("scale", [2])
        self.built = True

    def call(self, x):
        return x * self._scale


def _cell(make):
    cell = make()
    cell(tf.ones([1, 3]), cell.zero_state(1, tf.float32))
    return cell


def _called(layer):
    layer(tf.ones([1, 2]))
    return layer


cells = tf.nn.rnn_cell
HOLDERS = {
    "private attributes": (Hidden, {"_weight", "_parts/0/kernel", "_parts/0/bias"}),
    "a layer's variable by its name": (lambda: _called(Scaled()), {"scale"}),
    "an LSTM": (
        lambda: _cell(lambda: cells.LSTMCell(2, use_peepholes=True)),
        {"kernel", "bias", "w_f_diag", "w_i_diag", "w_o_diag"},
    ),
    "a GRU": (
        lambda: _cell(lambda: cells.GRUCell(2)),
        {"gates.Skernel", "gates.Sbias", "candidate.Skernel", "candidate.Sbias"},
    ),
    "cells in cells": (
        lambda: _cell(lambda: cells.MultiRNNCell([cells.DropoutWrapper(cells.BasicLSTMCell(2))])),
        {"cell-0/cell/kernel", "cell-0/cell/bias"},
    ),
}


@pytest.mark.parametrize(("make", "names"), HOLDERS.values(), ids=HOLDERS)
def test_nothing_that_an_object_holds_is_left_out(make, names, tmp_path, session):
    held = make()
    variables = tf.global_variables()
    values = [np.full(v.shape.as_list(), n + 1.0, np.float32) for n, v in enumerate(variables)]
    for variable, value in zip(variables, values, strict=True):
        variable.load(value, session)
    path = tf.train.Checkpoint(held=held).save(str(tmp_path / "ckpt"), session=session)
    result = {name for name, _ in tf.train.list_variables(path)}
    assert {f"held/{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in names} == {
        name for name in result if name.startswith("held/")
    }
    session.run(tf.variables_initializer(variables))
    tf.train.Checkpoint(held=held).restore(path).assert_consumed().run_restore_ops(session)
    for variable, value in zip(variables, values, strict=True):
        np.testing.assert_array_equal(session.run(variable), value)
