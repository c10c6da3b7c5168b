"""Sessions that tests open for one call."""

from contextlib import contextmanager

import pytest

import tensorfleet as tf


def run(fetches, feed=None):
    """The values of fetches, from a session of their own."""
    with tf.Session() as session:
        return session.run(fetches, feed)


def run_initialized(fetches, feed=None):
    """The values of fetches, after the variables have got theirs."""
    with initialized() as session:
        return session.run(fetches, feed)


def initialized():
    """A session in which the variables have their values."""
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


@contextmanager
def running():
    """A session in which all variables have their values and the queue runners run."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        try:
            yield session
        finally:
            coord.request_stop()
            coord.join(threads)


def all_of(session, fetch):
    """What a fetch gives, run after run, until it says there is no more."""
    result = []
    while True:
        try:
            result.append(session.run(fetch))
        except tf.errors.OutOfRangeError:
            return result


def elements(dataset):
    """All elements of a dataset."""
    following = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        return all_of(session, following)


def ends(session, fetch):
    """Checks that a fetch says there is no more."""
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(fetch)


def programs_of(session, fetches, fed=()):
    """The compiled programs that these fetches have run, with these tensors fed."""
    items = session._prepare(fetches, dict.fromkeys(fed, 0)).program.items
    found = [getattr(item, "compiler", None) for item in items]
    return [p for compiler in found if compiler is not None for p in compiler.programs.values() if p]
