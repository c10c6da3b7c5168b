"""Batches out of single elements."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import ends, running


def counter(limit, start=0):
    """Gives start, start + 1, ... and ends at `limit`."""
    return tf.train.limit_epochs(tf.count_up_to(tf.Variable(start, dtype=tf.int64), limit), 10**6)


# -- batch ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [False, True])
def test_batches_of_single_elements(names):
    n = counter(10)
    text = tf.constant("string")
    if names:
        out = tf.train.batch({"n": n, "s": text, "c": n * 2}, batch_size=3)
        fetch = [out["n"], out["c"], out["s"]]
    else:
        fetch = [*tf.train.batch([n, n * 2, text], batch_size=3)]
    assert fetch[0].shape.as_list() == [3]
    with running() as sess:
        for i in range(3):
            numbers, doubled, texts = sess.run(fetch)
            assert numbers.tolist() == [3 * i, 3 * i + 1, 3 * i + 2]
            assert doubled.tolist() == (numbers * 2).tolist()
            assert texts.tolist() == [b"string"] * 3
        ends(sess, fetch)  # the tenth is not enough


def test_a_single_tensor_comes_back_alone():
    out = tf.train.batch([counter(4)], batch_size=2)
    named = tf.train.batch({"x": counter(4)}, batch_size=2)
    assert isinstance(out, tf.Tensor)
    assert list(named) == ["x"]
    with running() as sess:
        assert sess.run(out).tolist() == [0, 1]
        assert sess.run(named)["x"].tolist() == [0, 1]


def test_the_last_batch_may_be_smaller():
    out = tf.train.batch([counter(10)], batch_size=4, allow_smaller_final_batch=True)
    assert out.shape.as_list() == [None]
    with running() as sess:
        assert [sess.run(out).tolist() for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        ends(sess, out)


def test_many_elements_at_a_time():
    n = counter(4)
    out = tf.train.batch([tf.stack([n * 3, n * 3 + 1, n * 3 + 2])], batch_size=4, enqueue_many=True)
    with running() as sess:
        assert np.concatenate([sess.run(out) for _ in range(3)]).tolist() == list(range(12))
        ends(sess, out)


def test_several_threads_lose_nothing():
    out = tf.train.batch([counter(60)], batch_size=6, num_threads=4)
    with running() as sess:
        got = np.concatenate([sess.run(out) for _ in range(10)])
        assert sorted(got.tolist()) == list(range(60))
        ends(sess, out)


def test_elements_of_different_sizes_are_padded():
    n = counter(4)
    out = tf.train.batch([tf.range(n + 1)], batch_size=2, dynamic_pad=True)
    assert out.shape.as_list() == [2, None]
    with running() as sess:
        assert sess.run(out).tolist() == [[0, 0], [0, 1]]
        assert sess.run(out).tolist() == [[0, 1, 2, 0], [0, 1, 2, 3]]


def test_shapes_can_be_told():
    unknown = tf.placeholder_with_default(np.zeros(3, np.float32), None)
    with pytest.raises(ValueError, match="Cannot infer Tensor's rank"):
        tf.train.batch([unknown], batch_size=2)
    out = tf.train.batch([unknown], batch_size=2, shapes=[[3]])
    assert out.shape.as_list() == [2, 3]
    with pytest.raises(ValueError, match="All shapes must be fully defined"):
        tf.train.batch([tf.placeholder(tf.int32, [None])], batch_size=2)


def test_batch_sizes_may_be_tensors():
    size = tf.placeholder(tf.int32, [])
    out = tf.train.batch([counter(10)], batch_size=size)
    with running() as sess:
        assert sess.run(out, {size: 3}).tolist() == [0, 1, 2]
        assert sess.run(out, {size: 1}).tolist() == [3]


def test_summaries_tell_how_full_the_queue_is(session):
    tf.train.batch([counter(10)], batch_size=2, capacity=8, name="in")
    (summary,) = tf.get_collection(tf.GraphKeys.SUMMARIES)
    assert summary.op.name == "in/fraction_of_8_full"
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    (runner,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    for _ in range(2):
        session.run(runner.enqueue_ops[0])
    value = tf.Summary.FromString(session.run(summary)).value[0]
    assert (value.tag, value.simple_value) == ("in/fraction_of_8_full", 0.25)


def test_sparse_tensors_travel_through_batches():
    n = counter(6)
    sparse = tf.SparseTensor(tf.reshape(n % 3, [1, 1]), [n], [3])
    dense, out = tf.train.batch([n, sparse], batch_size=2)
    with running() as sess:
        for i in range(3):
            numbers, value = sess.run([dense, out])
            assert numbers.tolist() == [2 * i, 2 * i + 1]
            assert value.values.tolist() == [2 * i, 2 * i + 1]
            assert value.indices.tolist() == [[0, 2 * i % 3], [1, (2 * i + 1) % 3]]
            assert value.dense_shape.tolist() == [2, 3]
        ends(sess, [dense, out])


def test_sparse_rows_travel_one_by_one():
    rows = tf.SparseTensor([[0, 1], [1, 0]], [5, 6], [2, 3])
    out = tf.train.batch([rows], batch_size=1, enqueue_many=True)
    with running() as sess:
        first, second = sess.run(out), sess.run(out)
        assert (first.values.tolist(), first.indices.tolist()) == ([5], [[0, 1]])
        assert (second.values.tolist(), second.indices.tolist()) == ([6], [[0, 0]])


# -- join ----------------------------------------------------------------------------------------------


def test_several_sources_join():
    a, b = counter(20), counter(120, start=100)
    out, texts = tf.train.batch_join([[a, "a"], [b, "b"]], batch_size=8)
    with running() as sess:
        got = [sess.run([out, texts]) for _ in range(5)]
        ends(sess, [out, texts])
    numbers = np.concatenate([n for n, _ in got]).tolist()
    labels = np.concatenate([t for _, t in got]).tolist()
    assert sorted(numbers) == [*range(20), *range(100, 120)]
    assert all((t == b"b") == (n >= 100) for n, t in zip(numbers, labels, strict=True))
    assert [n for n in numbers if n < 100] == list(range(20))


def test_sources_must_agree():
    with pytest.raises(TypeError, match="Expected types to be consistent: int32 vs. float32"):
        tf.train.batch_join([[tf.constant(1)], [tf.constant(2.0)]], batch_size=2)
    with pytest.raises(ValueError, match="Expected at least one set of tensors"):
        tf.train.batch_join([], batch_size=2)
    with pytest.raises(ValueError, match="same keys"):
        tf.train.batch_join([{"a": tf.constant(1)}, {"b": tf.constant(1)}], batch_size=2)
    with pytest.raises(ValueError, match="not compatible"):
        tf.train.batch_join([[tf.constant([1])], [tf.constant([1, 2])]], batch_size=2)


# -- shuffle -------------------------------------------------------------------------------------------


def test_shuffled_batches_hold_every_element_once():
    out = tf.train.shuffle_batch([counter(60)], batch_size=5, capacity=40, min_after_dequeue=20, seed=141421)
    with running() as sess:
        got = np.concatenate([sess.run(out) for _ in range(12)]).tolist()
        ends(sess, out)
    assert sorted(got) == list(range(60))
    assert got != sorted(got)


def test_shuffled_joins_and_smaller_last_batches():
    out = tf.train.shuffle_batch_join(
        [[counter(10)], [counter(27, start=20)]],
        batch_size=5,
        capacity=32,
        min_after_dequeue=3,
        allow_smaller_final_batch=True,
    )
    with running() as sess:
        got = [sess.run(out).tolist() for _ in range(4)]
        ends(sess, out)
    assert [len(g) for g in got] == [5, 5, 5, 2]
    assert sorted(n for g in got for n in g) == [*range(10), *range(20, 27)]


def test_capacity_must_exceed_what_stays():
    with pytest.raises(ValueError, match="capacity 5 must be bigger than min_after_dequeue 5"):
        tf.train.shuffle_batch([tf.constant(1)], batch_size=2, capacity=5, min_after_dequeue=5)


# -- maybe ---------------------------------------------------------------------------------------------


def test_some_elements_are_left_out():
    n = counter(12)
    out = tf.train.maybe_batch([n], keep_input=tf.equal(n % 3, 0), batch_size=2)
    with running() as sess:
        assert [sess.run(out).tolist() for _ in range(2)] == [[0, 3], [6, 9]]
        ends(sess, out)


def test_some_rows_are_left_out():
    n = counter(4)
    rows = tf.stack([n * 3, n * 3 + 1, n * 3 + 2])
    out = tf.train.maybe_batch([rows], tf.equal(rows % 2, 0), batch_size=3, enqueue_many=True)
    with running() as sess:
        assert [sess.run(out).tolist() for _ in range(2)] == [[0, 2, 4], [6, 8, 10]]
        ends(sess, out)


def test_choices_known_beforehand():
    out = tf.train.maybe_batch([counter(4)], keep_input=True, batch_size=2)
    with running() as sess:
        assert sess.run(out).tolist() == [0, 1]
    with pytest.raises(ValueError, match="dimensions must be known"):
        tf.train.maybe_batch([tf.constant(1)], tf.placeholder(tf.bool), batch_size=2)
    with pytest.raises(ValueError, match="cannot be a vector when `enqueue_many=False`"):
        tf.train.maybe_batch([tf.constant(1)], tf.placeholder(tf.bool, [2]), batch_size=2)
    with pytest.raises(ValueError, match="must be 0 or 1 dimensions"):
        tf.train.maybe_batch(
            [tf.constant([1])], tf.placeholder(tf.bool, [2, 2]), batch_size=2, enqueue_many=True
        )


def test_the_other_forms_of_maybe():
    a, b = counter(6), counter(16, start=10)
    joined = tf.train.maybe_batch_join(
        [[a], [b]], tf.constant(True), batch_size=4, allow_smaller_final_batch=True
    )
    n = counter(20)
    shuffled = tf.train.maybe_shuffle_batch([n], 5, 10, 2, tf.less(n, 10))
    m = counter(8)
    both = tf.train.maybe_shuffle_batch_join([[m]], 4, 10, 2, tf.less(m, 4))
    with running() as sess:
        got = np.concatenate([sess.run(joined) for _ in range(3)])
        assert sorted(got.tolist()) == [*range(6), *range(10, 16)]
        assert sorted(np.concatenate([sess.run(shuffled) for _ in range(2)]).tolist()) == list(range(10))
        assert sorted(sess.run(both).tolist()) == [0, 1, 2, 3]


def test_a_whole_pipeline_trains():
    """Names of files, their lines (here: rows), shuffled batches, a model: the classical form."""
    x = np.linspace(-1, 1, 64).astype(np.float32)
    rows, targets = tf.train.slice_input_producer([x, 3 * x + 1], num_epochs=60, seed=1)
    bx, by = tf.train.shuffle_batch(
        [rows, targets], batch_size=16, capacity=100, min_after_dequeue=30, seed=1
    )
    w, b = tf.Variable(0.0), tf.Variable(0.0)
    loss = tf.reduce_mean(tf.square(w * bx + b - by))
    train = tf.train.GradientDescentOptimizer(0.2).minimize(loss)
    steps = 0
    with running() as sess:
        try:
            while True:
                sess.run(train)
                steps += 1
        except tf.errors.OutOfRangeError:
            pass
        np.testing.assert_allclose(sess.run([w, b]), [3, 1], atol=0.05)
    assert steps == 60 * 64 // 16
