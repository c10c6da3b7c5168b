"""What each replica gets of a dataset."""

import numpy as np
import pytest

import tensorfleet as tf

from .conftest import TWO


def _all(mirrored, iterator, element):
    result = []
    with tf.Session(config=TWO) as sess:
        sess.run(iterator.initialize())
        while True:
            try:
                result.append([a.tolist() for a in sess.run(mirrored.unwrap(element))])
            except tf.errors.OutOfRangeError:
                return result


def test_a_batch_is_divided_among_the_replicas(mirrored):
    iterator = mirrored.make_dataset_iterator(tf.data.Dataset.range(11).batch(4))
    wanted = [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10]]]
    assert _all(mirrored, iterator, iterator.get_next()) == wanted


def test_a_distributed_dataset_makes_iterators_of_both_kinds(mirrored):
    data = mirrored.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2, drop_remainder=True))
    iterator = tf.data.make_initializable_iterator(data)
    element = iterator.get_next()
    assert mirrored.unwrap(element)[0].shape.as_list() == [1]
    assert _all(mirrored, iterator, element) == [[[0], [1]], [[2], [3]]]
    once = tf.data.make_one_shot_iterator(data)
    assert _all(mirrored, once, once.get_next()) == [[[0], [1]], [[2], [3]]]


def test_an_input_function_gives_each_replica_batches_of_its_own(mirrored):
    results = []

    def input_fn(context):
        results.append((context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync))
        assert context.get_per_replica_batch_size(8) == 4
        with pytest.raises(ValueError, match="not divisible"):
            context.get_per_replica_batch_size(7)
        return tf.data.Dataset.range(6).batch(1)

    iterator = mirrored.make_input_fn_iterator(input_fn)
    assert _all(mirrored, iterator, iterator.get_next()) == [[[0], [1]], [[2], [3]], [[4], [5]]]
    assert results == [(1, 0, 2)]


def test_elements_keep_their_structure_and_sparse_ones_are_divided_too(mirrored):
    sparse = tf.SparseTensor([[0, 0], [1, 1], [3, 0]], [1.0, 2.0, 3.0], [4, 2])
    data = tf.data.Dataset.from_tensors({"x": tf.range(4), "s": sparse})
    iterator = mirrored.make_dataset_iterator(data)
    element = iterator.get_next()
    dense = mirrored.run(
        lambda e: tf.sparse.to_dense(e["s"]) + tf.cast(e["x"], tf.float32)[:, None], (element,)
    )
    with tf.Session(config=TWO) as sess:
        sess.run(iterator.initialize())
        one, two = sess.run(mirrored.unwrap(dense))
    np.testing.assert_array_equal(one, [[1, 0], [1, 3]])
    np.testing.assert_array_equal(two, [[2, 2], [6, 3]])


def test_a_dataset_that_is_not_batched_is_refused(mirrored):
    with pytest.raises(ValueError, match="must be batched"):
        mirrored.make_dataset_iterator(tf.data.Dataset.range(4)).get_next()


def test_arrays_become_a_dataset(mirrored):
    data = mirrored.experimental_make_numpy_dataset((np.arange(4), np.arange(4.0)))
    iterator = mirrored.make_dataset_iterator(data.batch(4))
    summed = mirrored.run(lambda e: tf.reduce_sum(e[1]), (iterator.get_next(),))
    with tf.Session(config=TWO) as sess:
        sess.run(iterator.initialize())
        assert sess.run(mirrored.unwrap(summed)) == (1.0, 5.0)


def test_several_steps_in_one_run(mirrored):
    with mirrored.scope():
        v = tf.get_variable("v", initializer=0.0, aggregation=tf.VariableAggregation.SUM)
        iterator = mirrored.make_dataset_iterator(tf.data.Dataset.range(8).batch(2))

        def one(context, x):
            add = lambda x: v.assign_add(tf.cast(tf.reduce_sum(x), tf.float32), read_value=False)  # noqa: E731
            return mirrored.run(add, (x,))

        context = mirrored.extended.experimental_run_steps_on_iterator(one, iterator, iterations=3)
    with tf.Session(config=TWO) as sess:
        sess.run([v.initializer, iterator.initialize()])
        sess.run(context.run_op)
        assert sess.run(v) == 15.0
