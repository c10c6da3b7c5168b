"""Inputs of known and of partly known shape."""

import pytest

import tensorfleet as tf


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [2, 3], name="x")


@pytest.fixture
def u():
    return tf.placeholder(tf.float32, [None, 3], name="u")
