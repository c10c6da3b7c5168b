"""tf.contrib.checkpoint: objects under names of their own."""

import pytest

import tensorfleet as tf


def test_objects_are_saved_under_names_made_different(session, tmp_path):
    tracker = tf.contrib.checkpoint.UniqueNameTracker()
    variables = [tracker.track(tf.Variable(float(i), name="v"), "weights") for i in range(2)]
    session.run(tf.global_variables_initializer())
    path = tf.train.Checkpoint(slots=tracker).save(str(tmp_path / "model"), session=session)
    names = [name for name, _ in tf.train.list_variables(path)]
    assert [n for n in names if n.startswith("slots")] == [
        f"slots/{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in ("weights", "weights_1")
    ]
    session.run([v.assign(9.0) for v in variables])
    tf.train.Checkpoint(slots=tracker).restore(path).run_restore_ops(session)
    assert session.run(variables) == [0.0, 1.0]


def test_only_what_can_be_saved_is_tracked():
    with pytest.raises(ValueError, match="Expected a trackable value"):
        tf.contrib.checkpoint.UniqueNameTracker().track("text", "name")
