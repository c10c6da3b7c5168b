"""Blocks go through functions operation by operation, and give what the elements give one by one."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.api.data import calls
from tensorfleet.api.data.drawing import draws
from tests.support.sessions import all_of, elements


def by_block(dataset, function, monkeypatch):
    """The elements of a mapped dataset, in two batches; checks that its function took no element by itself."""
    with monkeypatch.context() as patch:
        patch.setattr(calls.DatasetFunction, "call", lambda *args: pytest.fail("an element went alone"))
        whole = dataset.map(function)
        iterator = whole.padded_batch(7, whole.output_shapes).make_initializable_iterator()
        following = iterator.get_next()
        with tf.Session() as session:
            session.run(iterator.initializer)
            return [row for batch in all_of(session, following) for row in batch]


NUMBERS = np.arange(12, dtype=np.float32)


@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64])
@pytest.mark.parametrize("shape", [[], [1], [3], [4], [2, 3], [0]])
@pytest.mark.parametrize("draw", [tf.random_uniform, tf.random_normal, tf.truncated_normal])
def test_random_numbers_are_those_of_element_after_element(draw, shape, dtype, monkeypatch):
    dataset = tf.data.Dataset.from_tensor_slices(NUMBERS)
    function = lambda x: draw(shape, dtype=dtype, seed=5)  # noqa: E731
    alone, together = elements(dataset.map(function)), by_block(dataset, function, monkeypatch)
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.random_uniform([3], 2, 50, dtype=tf.int32, seed=5),
        lambda x: tf.random_uniform([5], 2, 50, dtype=tf.int64, seed=5),
        lambda x: tf.random_uniform([2], 0, tf.cast(x, tf.int32) + 2, dtype=tf.int32, seed=5),
        lambda x: x + tf.random_normal([], seed=5) * tf.random_uniform([3], seed=6),
        lambda x: tf.random_shuffle(tf.range(6), seed=5),
        lambda x: tf.random_shuffle(x + tf.range(1.0), seed=5),
        lambda x: tf.random_shuffle(tf.reshape(x + tf.range(10.0), [5, 2]), seed=5),
        lambda x: tf.random_gamma([3], 2.0, seed=5),
        lambda x: tf.random_poisson(2.0, [3], seed=5),
        lambda x: tf.multinomial([[0.0, 1.0, 2.0]], 4, seed=5),
    ],
)
def test_random_operations_of_all_kinds(function, monkeypatch):
    dataset = tf.data.Dataset.from_tensor_slices(NUMBERS)
    alone, together = elements(dataset.map(function)), by_block(dataset, function, monkeypatch)
    np.testing.assert_array_equal(together, alone)


def test_a_block_that_fails_draws_what_its_elements_draw_one_by_one():
    table = tf.constant([10.0, 20.0, 30.0])

    def mapped():
        values = tf.data.Dataset.from_tensor_slices([0, 2, 7, 1, 1, 9, 0, 2])
        failing = values.map(lambda x: tf.random_uniform([], seed=5) + tf.gather(table, x))
        return failing.apply(tf.data.experimental.ignore_errors())

    alone, batches = elements(mapped()), elements(mapped().batch(4))
    np.testing.assert_array_equal(np.concatenate(batches), alone)


def test_a_random_filter_keeps_as_many_as_it_should():
    dataset = tf.data.Dataset.range(1000).filter(lambda x: tf.random_uniform([], seed=3) < 0.25)
    kept = elements(dataset.batch(1000))[0]
    assert 180 < len(kept) < 320 and (np.diff(kept) > 0).all()


def test_many_numbers_for_one_element_are_left_to_the_compiler():
    for size, together in ((100, True), (100_000, False), (tf.placeholder(tf.int32, []), False)):
        op = tf.random_normal([size]).op.inputs[0].op.inputs[0].op
        assert op.type == "RandomStandardNormal" and draws(op) is together


LENGTHS = [3, 1, 4, 1, 5, 2, 6, 5, 3, 5]


def ragged():
    """Vectors of different lengths, which go as a list."""
    padded = tf.data.Dataset.from_tensor_slices(np.array(LENGTHS, np.int32))
    return padded.map(lambda n: tf.range(n) * 2)


@pytest.mark.parametrize(
    "function",
    [
        tf.shape,
        lambda x: tf.shape(x, out_type=tf.int64),
        lambda x: tf.shape(x)[0],
        tf.size,
        lambda x: tf.cast(
            tf.reduce_sum(tf.cast(tf.less_equal(tf.constant([2, 4]), tf.shape(x)[0]), tf.int64)), tf.int32
        ),
    ],
)
def test_lengths_of_elements_that_differ(function, monkeypatch):
    alone = elements(ragged().map(function))
    batched = elements(ragged().map(function).batch(4))
    np.testing.assert_array_equal([row for batch in batched for row in batch], alone)


ROWS = np.arange(10 * 4 * 3, dtype=np.float32).reshape(10, 4, 3) % 7


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[1],
        lambda x: x[:, 1],
        lambda x: x[::-1, tf.newaxis, :2],
        lambda x: x[..., -1],
        lambda x: x[1:1],
        lambda x: tf.reduce_sum(x),
        lambda x: tf.reduce_sum(x, 0),
        lambda x: tf.reduce_mean(x, [-1], keepdims=True),
        lambda x: tf.reduce_max(x, [0, 1]),
        lambda x: tf.reduce_any(x > 5, -1),
        lambda x: tf.reduce_prod(x, []),
        lambda x: tf.one_hot(tf.cast(x, tf.int32), 5),
        lambda x: tf.one_hot(tf.cast(x[0, 0], tf.int32), 5, axis=0),
        lambda x: tf.gather(tf.constant([[1.0, 2.0]] * 7), tf.cast(x, tf.int32)),
        lambda x: tf.gather(x, [2, 0]),
        lambda x: tf.gather(tf.constant([[1.0, 2.0]] * 2), [0, 1, 1], axis=1) + x[0, 0],
        lambda x: tf.shape(x) + tf.cast(x[0, 0], tf.int32),
        lambda x: tf.size(x) + tf.cast(x[0, 0], tf.int32),
    ],
)
def test_operations_on_rows(function, monkeypatch):
    dataset = tf.data.Dataset.from_tensor_slices(ROWS)
    alone, together = elements(dataset.map(function)), by_block(dataset, function, monkeypatch)
    assert [a.dtype for a in alone] == [t.dtype for t in together]
    np.testing.assert_array_equal(together, alone)


def test_what_is_wrong_with_one_element_is_told_of_it():
    table = tf.constant([10, 20, 30])
    dataset = tf.data.Dataset.from_tensor_slices([0, 2, 7, 1]).map(lambda x: tf.gather(table, x)).batch(4)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)7 is not in \[0, 3\).*in element 2"):
        elements(dataset)
