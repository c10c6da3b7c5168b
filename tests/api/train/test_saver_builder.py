"""Savers that write in their own way, and objects that say what of them is saved."""

import pytest
from tensorfleet.python.training import saver as saver_module
from tensorfleet.python.training import saver_test_utils
from tensorfleet.python.training.tracking import base

import tensorfleet as tf
from tensorfleet.api.train.saver_builder import BulkSaverBuilder
from tensorfleet.base import logging


class Negative(saver_module.BaseSaverBuilder):
    """Restores the negative of what was saved."""

    def restore_op(self, filename_tensor, saveable, preferred_shard):
        return [-t for t in super().restore_op(filename_tensor, saveable, preferred_shard)]


def test_a_builder_changes_how_tensors_are_read(tmp_path, session):
    v = tf.Variable(3.0)
    saver = tf.train.Saver([v], builder=Negative())
    session.run(v.initializer)
    path = saver.save(session, str(tmp_path / "model"))
    saver.restore(session, path)
    assert session.run(v) == -3.0


class Twins(base.Trackable):
    """Two variables that are saved as one."""

    def __init__(self):
        self.first = tf.get_variable("first", initializer=1.0, use_resource=True)
        self.second = tf.get_variable("second", initializer=2.0, use_resource=True)

    @property
    def name(self):
        return self.first.name

    def _gather_saveables_for_checkpoint(self):
        twins = self

        class Both(saver_module.BaseSaverBuilder.ResourceVariableSaveable):
            def restore(self, restored_tensors, restored_shapes):
                (value,) = restored_tensors
                return tf.group(twins.first.assign(value), twins.second.assign(value))

        return {base.VARIABLE_VALUE_KEY: lambda name="twins": Both(self.first, "", name)}


def test_an_object_says_what_of_it_is_saved(tmp_path):
    twins = Twins()
    with tf.Session() as session:
        for i, chosen in enumerate(([twins], {"t": twins})):
            saver = tf.train.Saver(chosen)
            session.run(tf.global_variables_initializer())
            path = saver.save(session, str(tmp_path / str(i)))
            saver.restore(session, path)
            assert session.run([twins.first, twins.second]) == [1.0, 1.0]
    assert [name for name, _ in tf.train.list_variables(str(tmp_path / "1"))] == ["t"]


def test_a_table_is_saved_and_replaced_on_restoring(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        table = saver_test_utils.CheckpointedOp("table")
        session.run(table.insert("a", 1.0))
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        table = saver_test_utils.CheckpointedOp("table")
        session.run(table.insert("b", 2.0))
        tf.train.Saver([table.saveable]).restore(session, path)
        assert (session.run(table.keys()), session.run(table.values())) == (b"a", 1.0)


def test_a_value_may_be_made_when_it_is_saved():
    results = []

    def value():
        results.append(tf.constant(1.0))
        return results[-1]

    spec = saver_module.BaseSaverBuilder.SaveSpec(value, "", "x", dtype=tf.float32, device="")
    assert not results and spec.tensor is results[0]


def test_the_weighted_moving_average_counts_by_weight(session):
    from tensorfleet.python.training import moving_averages

    value, weight = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    average = moving_averages.weighted_moving_average(value, 0.5, weight)
    session.run(tf.global_variables_initializer())
    assert session.run(average, {value: 4.0, weight: 1.0}) == 4.0
    assert session.run(average, {value: 8.0, weight: 3.0}) == (4 * 0.25 + 24 * 0.5) / (0.25 + 1.5)


@pytest.mark.parametrize("make", ["argument", "builder", "message"])
def test_a_request_for_the_v1_format_is_answered_with_a_warning(make, monkeypatch):
    warnings = []
    monkeypatch.setattr(logging, "warning", lambda message, *args: warnings.append(message))
    tf.get_variable("v", initializer=1.0)
    if make == "argument":
        tf.train.Saver(write_version=tf.train.SaverDef.V1)
    elif make == "builder":
        BulkSaverBuilder(tf.train.SaverDef.V1)
    else:
        message = tf.train.Saver().as_saver_def()
        message.version = tf.train.SaverDef.V1
        assert not warnings
        tf.train.Saver(saver_def=message)
    assert len(warnings) == 1
    assert "written in the V2 format" in warnings[0]
