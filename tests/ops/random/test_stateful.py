"""Random numbers from a stream in a variable."""

import numpy as np
import pytest

import tensorfleet as tf

Generator = tf.random.experimental.Generator


def test_a_stream_goes_on_and_can_be_reset():
    generator = Generator.from_seed(7)
    drawn, reset = generator.normal([3]), generator.reset_from_seed(7)
    skip = generator.skip(3)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first, second = sess.run(drawn), sess.run(drawn)
        assert (first != second).all()
        sess.run(reset)
        np.testing.assert_array_equal(sess.run(drawn), first)
        sess.run(reset)
        sess.run(skip)
        np.testing.assert_array_equal(sess.run(drawn), second)


def test_a_copy_is_at_the_same_place():
    generator = Generator.from_state([1, 2, 3], alg=1)
    copied = Generator(copy_from=generator)
    with pytest.raises(AttributeError, match="numpy"):
        generator.split(2)  # keys of other streams are not known before a session runs
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(copied.key) == 3
        assert sess.run(copied.state).tolist() == [1, 2, 3]


def test_successes_of_few_trials_have_their_mean():
    generator = Generator.from_seed(1)
    drawn = generator.binomial([4000, 2], [10.0, 4.0], [0.3, 0.9])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        result = sess.run(drawn)
    assert result.dtype == np.int32 and result.max(0).tolist() <= [10, 4]
    np.testing.assert_allclose(result.mean(0), [3.0, 3.6], atol=0.1)
    np.testing.assert_allclose(result.var(0), [2.1, 0.36], atol=0.2)


def test_the_generator_of_all_begins_anywhere():
    try:
        one = tf.random.experimental.get_global_generator()
        assert tf.random.experimental.get_global_generator() is one
        other = Generator.from_non_deterministic_state()
        tf.random.experimental.set_global_generator(other)
        assert tf.random.experimental.get_global_generator() is other
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            assert (sess.run(one.state) != sess.run(other.state)).any()
    finally:
        from tensorfleet.api.variables import generators

        generators._global.clear()


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="Unsupported algorithm id: 7"):
        Generator.from_seed(1, alg=7)
    with pytest.raises(ValueError, match="Must specify maxval for integer dtype"):
        Generator.from_seed(1).uniform([2], dtype=tf.int32)
    threefry = Generator.from_seed(1, alg=2)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="Unsupported algorithm id: 2"):
            sess.run(threefry.uniform([2]))
