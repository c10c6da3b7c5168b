"""Variables by role and by name."""

import numpy as np
import pytest

import tensorfleet as tf

framework = tf.contrib.framework


def names(variables):
    return [v.op.name for v in variables]


def test_model_variables_are_global_and_listed():
    with tf.variable_scope("net"):
        v = framework.model_variable("w", [2], initializer=tf.ones_initializer(), collections=["mine"])
    framework.variable("v", [1])
    assert v in tf.global_variables() and v in tf.trainable_variables()
    assert names(framework.get_model_variables()) == ["net/w"]
    assert tf.get_collection("mine") == [v]
    assert names(framework.get_variables("net")) == ["net/w"]
    assert names(framework.get_variables_by_suffix("w")) == ["net/w"]
    assert names(framework.get_variables_by_name("v")) == ["v"]
    assert framework.get_unique_variable("net/w") is v
    with pytest.raises(ValueError, match="Variable w not found"):
        framework.get_unique_variable("w")


def test_local_variables_are_this_processs():
    v = framework.local_variable(0, name="count")
    assert tf.local_variables() == [v] and not tf.global_variables()


def test_variables_to_restore_leave_some_out():
    for scope in ("a", "b"):
        with tf.variable_scope(scope):
            framework.variable("w", [1])
            framework.variable("v", [1])
    assert names(framework.get_variables_to_restore(exclude=["b"])) == ["a/w", "a/v"]
    assert names(framework.get_variables_to_restore(include=["a", "b/w"])) == ["a/w", "a/v", "b/w"]
    with pytest.raises(TypeError, match="include is provided but is not a list"):
        framework.get_variables_to_restore(include="a")
    everything = tf.global_variables()
    assert names(framework.filter_variables(everything, ["w"], ["^b"])) == ["a/w"]


def test_a_chooser_gives_servers_in_turn():
    chooser = framework.VariableDeviceChooser(num_tasks=2)
    with framework.arg_scope([framework.variable], device=chooser):
        devices = [framework.variable(n, [1]).device for n in "abc"]
    assert devices == [f"/job:ps/task:{i}/device:CPU:0" for i in (0, 1, 0)]


def test_values_and_checkpoints_are_assigned(tmp_path, session):
    v = framework.variable("v", [2], initializer=tf.zeros_initializer())
    w = framework.variable("w", [2], initializer=tf.zeros_initializer())
    session.run(tf.global_variables_initializer())
    framework.assign_from_values_fn({"v": np.array([1.0, 2.0], np.float32)})(session)
    path = tf.train.Saver([v]).save(session, str(tmp_path / "model"))
    assert session.run(v).tolist() == [1, 2]
    session.run(tf.global_variables_initializer())
    assign, feeds = framework.assign_from_checkpoint(path, {"v": w})
    session.run(assign, feeds)
    assert session.run([v, w])[1].tolist() == [1, 2]
    restore = framework.assign_from_checkpoint_fn(path, [v, w], ignore_missing_vars=True)
    restore(session)
    assert session.run(v).tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"Checkpoint is missing variable \[w\]"):
        framework.assign_from_checkpoint(path, [w])
    assert framework.assign_from_checkpoint_fn(path, [w], ignore_missing_vars=True) is None


def test_the_name_of_a_checkpoint_may_be_that_of_a_folder(tmp_path, session):
    v = framework.variable("v", [2], initializer=tf.ones_initializer())
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver([v]).save(session, str(tmp_path))
    assign, feeds = framework.assign_from_checkpoint(path, [v])
    session.run(assign, feeds)
    assert framework.assign_from_checkpoint_fn(path, [v], ignore_missing_vars=True) is not None


@pytest.mark.parametrize("resource", [False, True])
def test_zeros_for_a_variable_without_a_value(session, resource):
    v = tf.get_variable("v", [2], initializer=tf.ones_initializer(), use_resource=resource)
    zeros = framework.zero_initializer(v)
    session.run(zeros)
    assert session.run(v).tolist() == [0, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="input is already initialized"):
        session.run(zeros)


def test_placeholders_of_a_graph_are_found_in_order():
    a, b = tf.placeholder(tf.float32, name="a"), tf.placeholder(tf.int32, name="b")
    tf.cast(a, tf.int32) + b
    assert tf.contrib.framework.get_placeholders(tf.get_default_graph()) == [a, b]
    with pytest.raises(TypeError, match="needs to be a Graph"):
        tf.contrib.framework.get_placeholders("graph")
