"""Queues that give the same things again and again."""

import pytest

import tensorfleet as tf
from tests.support.sessions import ends, running


def test_limit_epochs_counts_in_a_local_variable():
    seven = tf.constant(7)
    limited = tf.train.limit_epochs(seven, num_epochs=2)
    (epochs,) = tf.local_variables()
    assert epochs.op.name == "limit_epochs/epochs"
    assert tf.global_variables() == []
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        assert [sess.run(limited) for _ in range(2)] == [7, 7]
        with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 2"):
            sess.run(limited)
    assert tf.train.limit_epochs(seven) is seven
    for n in (0, -1):
        with pytest.raises(ValueError, match="num_epochs must be > 0"):
            tf.train.limit_epochs(seven, num_epochs=n)


def test_strings_in_order_for_some_epochs():
    queue = tf.train.string_input_producer(["to", "be", "or"], num_epochs=3, shuffle=False)
    name = queue.dequeue()
    with running() as sess:
        assert [sess.run(name) for _ in range(9)] == [b"to", b"be", b"or"] * 3
        ends(sess, name)


def test_strings_are_shuffled_anew_in_each_epoch():
    texts = [b"a", b"b", b"c", b"d"]
    queue = tf.train.string_input_producer(texts, num_epochs=20, shuffle=True, seed=271828)
    epoch = queue.dequeue_many(4)
    with running() as sess:
        seen = [tuple(sess.run(epoch)) for _ in range(20)]
        assert all(sorted(e) == texts for e in seen)
        assert len(set(seen)) > 5
        ends(sess, epoch)


def test_strings_of_a_variable(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).touch()
    files = tf.train.match_filenames_once(str(tmp_path / "*"))
    name = tf.train.string_input_producer(files, num_epochs=1, shuffle=False).dequeue()
    with running() as sess:
        assert [sess.run(name) for _ in range(2)] == [str(tmp_path / n).encode() for n in "ab"]
        ends(sess, name)


def test_strings_without_end():
    name = tf.train.string_input_producer(["x"], shuffle=False).dequeue()
    with running() as sess:
        assert [sess.run(name) for _ in range(100)] == [b"x"] * 100


def test_no_strings_at_all(session):
    with pytest.raises(ValueError, match="requires a non-null input tensor"):
        tf.train.string_input_producer([])
    unknown = tf.train.string_input_producer(tf.constant([], tf.string))
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coord)
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(unknown.dequeue())
    with pytest.raises(tf.errors.InvalidArgumentError, match="requires a non-null input tensor"):
        coord.join(threads)


def test_rows_of_a_tensor():
    queue = tf.train.input_producer(tf.constant([[1, 2], [3, 4]]), num_epochs=1, shuffle=False)
    row = queue.dequeue()
    assert row.shape.as_list() == [2]
    with running() as sess:
        assert [sess.run(row).tolist() for _ in range(2)] == [[1, 2], [3, 4]]
        ends(sess, row)
    with pytest.raises(ValueError, match="not compatible"):
        tf.train.input_producer(tf.constant([[1, 2]]), element_shape=[3])
    with pytest.raises(ValueError, match="must have a fully defined shape or `element_shape`"):
        tf.train.input_producer(tf.placeholder(tf.int32))


def test_range():
    number = tf.train.range_input_producer(3, num_epochs=2, shuffle=False).dequeue()
    with running() as sess:
        assert [sess.run(number) for _ in range(6)] == [0, 1, 2] * 2
        ends(sess, number)


def test_slices_of_several_tensors_belong_together():
    texts, numbers = [b"A", b"B", b"C", b"D"], [0, 1, 2, 3]
    slices = tf.train.slice_input_producer([texts, numbers], num_epochs=10, seed=1)
    with running() as sess:
        got = [sess.run(slices) for _ in range(40)]
        assert all(texts[i] == t for t, i in got)
        for start in range(0, 40, 4):
            assert sorted(i for _, i in got[start : start + 4]) == numbers
        ends(sess, slices)
    with pytest.raises(ValueError, match="Expected at least one tensor in slice_input_producer"):
        tf.train.slice_input_producer([])


def test_producers_of_one_shared_name_share_a_queue(session):
    a = tf.train.string_input_producer(["x", "y"], shuffle=False, shared_name="both", name="a")
    b = tf.train.string_input_producer(["x", "y"], shuffle=False, shared_name="both", name="b")
    session.run(tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)[0].enqueue_ops)
    assert session.run([a.size(), b.size()]) == [2, 2]
