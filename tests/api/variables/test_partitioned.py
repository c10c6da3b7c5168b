"""Variables in several parts: what is asked of the parts, sharing, and updates of the whole."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.api.variables.partitioned import PartitionedVariable, PartitionInfo


def parts(*values):
    result = []
    for i, value in enumerate(values):
        result.append(tf.Variable([value]))
        result[-1]._set_save_slice_info(tf.Variable.SaveSliceInfo("whole", [len(values)], [i], [1]))
    return result


def test_parts_are_sorted_by_where_they_lie():
    a, b, c = parts(1.0, 2.0, 3.0)
    whole = PartitionedVariable("whole", [3], tf.float32, [c, a, b], [3])
    assert [v is w for v, w in zip(whole, (a, b, c), strict=True)] == [True] * 3
    assert whole.shape == [3]


def test_parts_that_make_no_whole_are_refused():
    a, b = parts(1.0, 2.0)
    for message, shape, variables, counts in (
        ("may not both be empty", [2], [], []),
        ("must have a save_slice_info", [1], [tf.Variable([0.0])], [1]),
        ("full shapes must match", [3], [a, b], [2]),
        ("must be positive", [2], [a], [0]),
        ("do not make 1 parts", [2], [a], [2]),
    ):
        with pytest.raises(ValueError, match=message):
            PartitionedVariable("whole", shape, tf.float32, variables, counts)
    with pytest.raises(TypeError, match="variable_list is not a list"):
        PartitionedVariable("whole", [2], tf.float32, a, [2])


def test_updates_take_a_tensor_of_the_whole_or_a_value_for_each_part():
    initial = tf.zeros([5, 2])
    v = tf.get_variable("v", initializer=initial, partitioner=tf.fixed_size_partitioner(3))
    w = tf.get_variable("w", initializer=initial + 1, partitioner=tf.fixed_size_partitioner(3))
    new = np.arange(10.0, dtype=np.float32).reshape(5, 2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(v.assign(tf.constant(new)))
        np.testing.assert_array_equal(session.run(v.as_tensor()), new)
        session.run(v.assign_add(w))
        session.run(v.assign_sub([new[:2], new[2:4], new[4:]], read_value=False))
        np.testing.assert_array_equal(session.run(v.as_tensor()), np.ones((5, 2)))
    with pytest.raises(ValueError, match="v has 3 parts, and values for 2 are given"):
        v.assign([1.0, 2.0])


def test_reading_the_whole_ignores_control_dependencies_and_gives_a_new_name_each_time(graph):
    v = tf.get_variable("v", [2], partitioner=tf.fixed_size_partitioner(1))
    before = set(graph.get_operations())
    with tf.control_dependencies([tf.constant(1, name="first")]):
        names = [v.as_tensor().name, v.as_tensor().name]
    assert names == ["v:0", "v_1:0"]
    assert not [op for op in set(graph.get_operations()) - before if op.control_inputs]


def test_sharing_asks_for_the_same_cut_and_no_partitioner_asks_for_none():
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
        v = tf.get_variable("v", [4])
        assert tf.get_variable("scalar", []).name == "s/scalar:0"
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("v") is v
        with pytest.raises(ValueError, match="Trying to reuse partitioned variable .* specified shape"):
            tf.get_variable("v", [5])
        with pytest.raises(ValueError, match="Trying to reuse partitioned variable .* specified dtype"):
            tf.get_variable("v", [4], tf.int32)
    with (
        tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(4), reuse=True),
        pytest.raises(ValueError, match=r"specified partitions \[4\] and found partitions \[2\]"),
    ):
        tf.get_variable("v", [4])


def test_parts_of_a_constant_have_its_type():
    result = tf.create_partitioned_variables([4], [2], tf.constant([1, 2, 3, 4]))
    assert {v.dtype.base_dtype for v in result} == {tf.int32}


def test_what_an_initializer_is_told_of_its_part_is_checked():
    info = PartitionInfo([9, 3], [4, 0])
    assert (info.single_offset([1, 3]), info.single_slice_dim([2, 3])) == (4, 0)
    for shape in ([1, 2, 3], [6, 3], [1, 1]):
        with pytest.raises(ValueError):
            info.single_slice_dim(shape)
    for full, offset in (([0, 1], [0]), ([1, 1], [0, 1])):
        with pytest.raises(ValueError):
            PartitionInfo(full, offset)
    with pytest.raises(TypeError, match="`full_shape` must be a sequence"):
        PartitionInfo("foo", [0, 1])
