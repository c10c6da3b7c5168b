"""tf.contrib.checkpoint: objects under names of their own."""

import numpy as np
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


def test_arrays_are_saved_and_made_anew(session, tmp_path):
    arrays = tf.contrib.checkpoint.NumpyState()
    checkpoint = tf.train.Checkpoint(arrays=arrays, w=tf.Variable(1.0))
    session.run(tf.global_variables_initializer())
    arrays.x = np.ones([2, 3])
    arrays.n = np.int64(7)
    path = checkpoint.save(str(tmp_path / "ckpt"), session)
    arrays.x[1, 1] = 4.0
    checkpoint.restore(path)
    assert (arrays.x == np.ones([2, 3])).all()
    other = tf.train.Checkpoint(arrays=tf.contrib.checkpoint.NumpyState())
    other.restore(path)
    assert other.arrays.x.shape == (2, 3) and other.arrays.n == 7
    arrays.x = np.zeros([4])
    checkpoint.restore(checkpoint.save(str(tmp_path / "ckpt"), session)).initialize_or_restore(session)
    assert arrays.x.tolist() == [0] * 4


def test_only_arrays_are_saved_so():
    arrays = tf.contrib.checkpoint.NumpyState()
    with pytest.raises(NotImplementedError, match="which is not a NumPy array"):
        arrays.x = [1]
    with pytest.raises(AttributeError, match="no attribute 'x'"):
        arrays.x  # noqa: B018
