"""The devices of one session meet."""

import pytest
from tensorfleet.python.ops import collective_ops

import tensorfleet as tf


@pytest.fixture
def session():
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as result:
        yield result


def _on_each(make):
    result = []
    for i in range(2):
        with tf.device(f"/CPU:{i}"):
            result.append(make(i))
    return result


def test_all_devices_get_the_mean_of_what_they_bring(session):
    values = [[1.0, 2.0], [3.0, 6.0]]
    means = _on_each(lambda i: collective_ops.all_reduce(tf.constant(values[i]), 2, 1, 1, "Add", "Div"))
    for _ in range(2):
        assert [m.tolist() for m in session.run(means)] == [[2, 4]] * 2


def test_all_devices_get_what_each_brings(session):
    values = [[1, 2], [3, 4]]
    whole = _on_each(lambda i: collective_ops.all_gather(tf.constant(values[i]), 2, 1, 2))
    assert whole[0].shape == [4]
    assert [w.tolist() for w in session.run(whole)] == [[1, 2, 3, 4]] * 2


def test_values_of_other_shapes_are_not_gathered(session):
    values = [[1, 2], [3]]
    whole = _on_each(lambda i: collective_ops.all_gather(tf.constant(values[i]), 2, 1, 3))
    with pytest.raises(tf.errors.InternalError, match="Inconsistent output shapes"):
        session.run(whole)


def test_one_device_gives_a_value_to_the_other(session):
    with tf.device("/CPU:0"):
        sent = collective_ops.broadcast_send(tf.constant([5.0]), [1], tf.float32, 2, 1, 4)
    with tf.device("/CPU:1"):
        received = collective_ops.broadcast_recv([1], tf.float32, 2, 1, 4)
    assert [v.tolist() for v in session.run([sent, received])] == [[5], [5]]


def test_a_group_has_devices_and_more_than_one_of_them():
    with pytest.raises(ValueError, match="Device assignment required"):
        collective_ops.all_reduce(tf.constant(1.0), 2, 1, 5, "Add", "Id")
    with tf.device("/CPU:0"), pytest.raises(ValueError, match="group_size to all_reduce must be at least 2"):
        collective_ops.all_reduce(tf.constant(1.0), 1, 1, 5, "Add", "Id")
