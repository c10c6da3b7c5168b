"""The two seeds of a dataset."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.api.data.seeds import dataset_seeds


@pytest.mark.parametrize("given", [int, np.int64, lambda n: tf.constant(n, tf.int64)])
def test_the_seeds_of_a_dataset_are_tensors_and_not_both_zero(given):
    with tf.Session() as sess:
        assert sess.run(dataset_seeds(None)) == (0, 0)
        tf.set_random_seed(3)
        assert sess.run(dataset_seeds(given(5))) == (3, 5)
        tf.set_random_seed(0)
        assert sess.run(dataset_seeds(given(0))) == (0, 2**31 - 1)


def test_a_dataset_is_shuffled_by_a_seed_that_is_fed():
    seed = tf.placeholder(tf.int64, [])
    fixed = tf.data.Dataset.range(10).shuffle(10, seed=7).make_one_shot_iterator().get_next()
    fed = tf.data.Dataset.range(10).shuffle(10, seed=seed).make_initializable_iterator()
    following = fed.get_next()
    with tf.Session() as sess:
        sess.run(fed.initializer, {seed: 7})
        pairs = [sess.run([fixed, following]) for _ in range(10)]
    assert all(a == b for a, b in pairs)
