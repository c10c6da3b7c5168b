"""Small helpers that libraries import from inside TensorFlow."""

import tensorfleet as tf


def test_the_public_names_of_a_module():
    assert "make_all" in tf.python.util.all_util.make_all("tensorfleet.internals.util")
    assert not [n for n in tf.python.util.all_util.make_all(__name__) if n.startswith("_")]
