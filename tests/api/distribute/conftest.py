"""Sessions with two CPUs, as strategies of several replicas want them."""

import pytest

import tensorfleet as tf

TWO = tf.ConfigProto(device_count={"CPU": 2})


@pytest.fixture
def mirrored():
    """A strategy with a replica on each of two CPUs."""
    return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])


@pytest.fixture
def run():
    """Runs something after the initializers, in a session with two CPUs."""

    def evaluate(*fetches, first=()):
        with tf.Session(config=TWO) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            sess.run(list(first))
            items = [sess.run(f) for f in fetches]
        return items[0] if len(items) == 1 else items

    return evaluate
