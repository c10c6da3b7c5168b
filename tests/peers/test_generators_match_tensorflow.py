"""`tf.random.experimental.Generator`: TensorFlow's numbers."""

import numpy as np
import pytest

import tensorfleet
from tests.peers.programs import same

SEED = (1 << 70) + 12345


def ints(tf, g):
    return [g.uniform([5], 3, 1000, dtype=t) for t in (tf.int32, tf.int64)]


DRAWS = {
    "uniform": lambda tf, g: [g.uniform([3, 4]), g.uniform([5], -1.0, 2.0, dtype=tf.float64), g.uniform([2])],
    "normal": lambda tf, g: [g.normal([7]), g.normal([3], 1.0, 0.5, dtype=tf.float64), g.normal([2])],
    "truncated": lambda tf, g: [g.truncated_normal([40]), g.uniform([2])],
    "integers": ints,
    "bits": lambda tf, g: [
        g.uniform_full_int([4]),
        g.uniform_full_int([3], tf.int32),
        g.uniform_full_int([3], tf.int64),
    ],
    "seeds": lambda tf, g: [g.make_seeds(3)],
}


def drawn(tf, program):
    with tf.Graph().as_default(), tf.Session() as sess:
        generator = tf.random.experimental.Generator.from_seed(SEED, alg=1)
        state = generator.state
        result = program(tf, generator)
        sess.run(tf.global_variables_initializer())
        items = [sess.run(t) for t in result]  # one after the other
        return [*items, *[sess.run(t) for t in result], sess.run(state)]


@pytest.mark.parametrize("program", DRAWS.values(), ids=DRAWS.keys())
def test_numbers(tensorflow, program):
    same(drawn(tensorfleet, program), drawn(tensorflow, program))


def test_successes(tensorflow):
    def found(tf):
        with tf.Graph().as_default(), tf.Session() as sess:
            generator = tf.random.experimental.Generator.from_seed(SEED, alg=1)
            result = generator.binomial([4, 3], np.array([100.0, 1000.0, 600.0]), np.array([0.3, 0.4, 0.9]))
            sess.run(tf.global_variables_initializer())
            return sess.run(result)

    same(found(tensorfleet), found(tensorflow))


def test_a_stream_goes_on(tensorflow):
    def skipped(tf):
        with tf.Graph().as_default(), tf.Session() as sess:
            generator = tf.random.experimental.Generator.from_key_counter(7, [(1 << 64) - 300, 5], 1)
            before = tf.raw_ops.RngSkip(
                resource=generator.state.handle, algorithm=np.int64(1), delta=np.int64(3)
            )
            sess.run(tf.global_variables_initializer())
            sess.run(before)
            return [sess.run(generator.state), sess.run(generator.uniform([2])), sess.run(generator.state)]

    same(skipped(tensorfleet), skipped(tensorflow))


@pytest.mark.parametrize("seed", [5, SEED, [1, 2, 3], [9], list(range(6))], ids=str)
@pytest.mark.parametrize("alg", [1, 2])
def test_states(tensorflow, seed, alg):
    with tensorflow.Graph().as_default(), tensorflow.Session() as sess:
        theirs = tensorflow.random.experimental.create_rng_state(seed, alg)
        theirs = theirs if isinstance(theirs, np.ndarray) else sess.run(theirs)
    np.testing.assert_array_equal(tensorfleet.random.experimental.create_rng_state(seed, alg), theirs)
