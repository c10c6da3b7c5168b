"""Generators that a session leaves before their end."""

import gc

import pytest

import tensorfleet as tf


def first_of(generator):
    """A session that has taken one element, in a graph of its own; both are part of a cycle."""
    with tf.Graph().as_default() as graph:
        data = tf.data.Dataset.from_generator(generator, tf.int64, [])
        following = data.make_one_shot_iterator().get_next()
        session = tf.Session()
        graph.session = session
        assert session.run(following) == 1
        return session


# An exception in __del__ reaches nobody but this hook; pytest makes an error of its warning.
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_graph_and_its_session_are_dropped_before_the_end_of_a_generator():
    closed = []

    def generate():
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    session = first_of(generate)
    del session
    gc.collect()
    assert closed == [True]


def test_what_a_generator_raises_when_it_is_closed_early_is_logged(caplog):
    def generate():
        try:
            while True:
                yield 1
        finally:
            raise KeyError("too late")

    session = first_of(generate)
    with caplog.at_level("WARNING", logger="tensorflow"):
        session.close()
    assert "Error occurred when finalizing GeneratorDataset iterator: KeyError: 'too late'" in caplog.text
