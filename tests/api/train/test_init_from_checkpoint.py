"""Variables that start with values from a checkpoint."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run_initialized

WHOLE = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture
def saved(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("old/a", initializer=[1.0, 2.0])
        tf.get_variable("old/b", initializer=[3.0])
        tf.get_variable("c", initializer=tf.constant(WHOLE))
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(tmp_path / "model"))


def zeros(name, shape, **options):
    return tf.get_variable(name, shape, initializer=tf.zeros_initializer(), **options)


def test_scopes_map_to_scopes(saved):
    a, b = zeros("new/a", [2]), zeros("new/b", [1], use_resource=True)
    other = zeros("other", [2])
    tf.train.init_from_checkpoint(saved, {"old/": "new/"})
    values = run_initialized([a, b, other])
    assert [v.tolist() for v in values] == [[1, 2], [3], [0, 0]]


def test_the_root_maps_to_a_scope(saved):
    a, c = zeros("new/old/a", [2]), zeros("new/c", [4, 2])
    tf.train.init_from_checkpoint(saved, {"/": "new/"})
    assert run_initialized(a).tolist() == [1, 2]
    np.testing.assert_array_equal(run_initialized(c), WHOLE)


def test_names_map_to_variables_and_names(saved, tmp_path):
    a, b = zeros("x", [2]), zeros("y", [1])
    tf.train.init_from_checkpoint(str(tmp_path), {"old/a": a, "old/b": "y"})
    assert [v.tolist() for v in run_initialized([a, b])] == [[1, 2], [3]]


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_take_their_share(saved, axis):
    c = zeros("mine", [4, 2], partitioner=tf.fixed_size_partitioner(2, axis=axis))
    tf.train.init_from_checkpoint(saved, {"c": "mine"})
    np.testing.assert_array_equal(run_initialized(c.as_tensor()), WHOLE)
    d = zeros("mine2", [4, 2], partitioner=tf.fixed_size_partitioner(2, axis=axis))
    tf.train.init_from_checkpoint(saved, {"c": list(d)})
    np.testing.assert_array_equal(run_initialized(d.as_tensor()), WHOLE)


def test_what_cannot_be_mapped_is_refused(saved):
    x = zeros("s/x", [3])
    with pytest.raises(ValueError, match="doesn't match with shape of tensor old/a"):
        tf.train.init_from_checkpoint(saved, {"old/a": x})
    with pytest.raises(ValueError, match="Tensor nope is not found in"):
        tf.train.init_from_checkpoint(saved, {"nope": x})
    with pytest.raises(ValueError, match="Should be 'scope/': 'other_scope/'"):
        tf.train.init_from_checkpoint(saved, {"old/a": "unknown"})
    with pytest.raises(ValueError, match=r"Tensor old/x \(x in old/\) is not found"):
        tf.train.init_from_checkpoint(saved, {"old/": "s/"})


def test_a_list_of_pairs_gives_one_value_to_several_variables(saved):
    first, second = zeros("first", [2]), zeros("second", [2])
    tf.train.init_from_checkpoint(saved, [("old/a", first), ("old/a", second)])
    assert [v.tolist() for v in run_initialized([first, second])] == [[1.0, 2.0]] * 2


def test_a_list_of_one_whole_variable_takes_the_whole_tensor(saved):
    a = zeros("a", [2])
    tf.train.init_from_checkpoint(saved, {"old/a": [a]})
    assert run_initialized(a).tolist() == [1, 2]


def test_a_list_of_one_whole_variable_of_another_shape_is_refused(saved):
    with pytest.raises(ValueError, match=r"Shape of variable a:0 \(\(3,\)\) doesn't match"):
        tf.train.init_from_checkpoint(saved, {"old/a": [zeros("a", [3])]})


def test_a_list_with_parts_of_two_variables_is_refused(saved):
    halves = tf.fixed_size_partitioner(2)
    a, b = (list(zeros(name, [4, 2], partitioner=halves)) for name in "ab")
    with pytest.raises(ValueError, match="Slices must all be from the same tensor: a != b"):
        tf.train.init_from_checkpoint(saved, {"c": [a[0], b[1]]})
    with pytest.raises(ValueError, match="Slices must all be from the same tensor: a != whole"):
        tf.train.init_from_checkpoint(saved, {"c": [a[0], zeros("whole", [2, 2])]})
