"""Loops in XLA, some iterations at a time: the same results, and an end when their step ends."""

import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.scheduling import host_loops as loops
from tensorfleet.runtime.segments import traced_loops as loops_traced
from tests.support.waiting import in_background

SECONDS = 60


@pytest.fixture
def pieces(monkeypatch):
    """Loops are compiled at once, and then run three iterations at a time. Counts how often one was resumed."""
    resumed = []
    real = loops_traced._LoopProgram._go_on

    def go_on(self, *args):
        self.iterations = 3
        resumed.append(self)
        return real(self, *args)

    monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", -1.0)
    monkeypatch.setattr(loops_traced, "_FIRST_ITERATIONS", 3)
    monkeypatch.setattr(loops_traced, "_SECONDS_BETWEEN_LOOKS", 0.0)
    monkeypatch.setattr(loops_traced._LoopProgram, "_go_on", go_on)
    return resumed


def counting(n):
    return tf.while_loop(
        lambda i, x: i < n, lambda i, x: (i + 1, x * 1.5 + 1.0), [tf.constant(0), tf.constant(1.0)]
    )


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 6, 10])
def test_a_loop_in_pieces_gives_what_it_gives_as_a_whole(pieces, n):
    i, x = counting(tf.placeholder_with_default(n, []))
    expected = 1.0
    for _ in range(n):
        expected = expected * 1.5 + 1.0
    with tf.Session() as sess:
        assert sess.run([i, x]) == [n, pytest.approx(expected)]
    assert bool(pieces) == (n >= 3)


def test_arrays_and_gradients_of_a_loop_in_pieces(pieces):
    x = tf.placeholder_with_default(np.float32(1.1), [])

    def body(i, y, kept):
        y = y * x
        return i + 1, y, kept.write(i, y)

    n = 8
    start = [tf.constant(0), tf.constant(1.0), tf.TensorArray(tf.float32, n)]
    _, y, kept = tf.while_loop(lambda i, *_: i < n, body, start)
    with tf.Session() as sess:
        last, all_of_them, slope = sess.run([y, kept.stack(), tf.gradients(y, x)[0]])
    np.testing.assert_allclose(all_of_them, 1.1 ** np.arange(1, n + 1), rtol=1e-5)
    np.testing.assert_allclose([last, slope], [1.1**n, n * 1.1 ** (n - 1)], rtol=1e-5)
    assert pieces


def test_random_numbers_of_a_loop_in_pieces_are_those_of_the_whole(pieces, monkeypatch):
    def drawn(whole):
        with tf.Graph().as_default():
            tf.set_random_seed(5)
            start = [tf.placeholder_with_default(0, []), tf.zeros([4])]
            loop = tf.while_loop(
                lambda i, _: i < 9, lambda i, s: (i + 1, s + tf.random_uniform([4], seed=3)), start
            )
            if whole:
                monkeypatch.setattr(loops_traced, "_FIRST_ITERATIONS", 1000)
            with tf.Session() as sess:
                return [sess.run(loop[1]) for _ in range(2)]

    np.testing.assert_allclose(drawn(False), drawn(True), rtol=1e-6)


def test_a_check_that_fails_in_a_later_piece_is_told(pieces):
    table = tf.placeholder_with_default(np.zeros(7, np.float32), [7])
    _, s = tf.while_loop(
        lambda i, _: i < 20, lambda i, s: (i + 1, s + tf.gather(table, i)), [tf.constant(0), tf.constant(0.0)]
    )
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=r"7 is not in \[0, 7\)"):
        sess.run(s)


@pytest.fixture
def endless(monkeypatch):
    """A session and a loop in XLA, with the placeholder that says how long it runs."""
    monkeypatch.setattr(loops, "_COMPILE_AFTER_SECONDS", -1.0)
    n = tf.placeholder(tf.int64, [])
    loop = tf.while_loop(lambda i: i < n, lambda i: i + 1, [tf.constant(0, tf.int64)])
    sess = tf.Session()
    assert sess.run(loop, {n: 5}) == 5
    yield sess, loop, {n: 1 << 60}
    sess.close()


def test_a_loop_in_xla_ends_at_the_deadline(endless):
    sess, loop, feeds = endless
    with pytest.raises(tf.errors.DeadlineExceededError, match="in a loop"):
        sess.run(loop, feeds, options=tf.RunOptions(timeout_in_ms=100))


def test_a_loop_in_xla_ends_with_its_session(endless, monkeypatch):
    sess, loop, feeds = endless
    looked = threading.Event()
    real = loops.LoopItem._look
    monkeypatch.setattr(loops.LoopItem, "_look", lambda self, ctx: (looked.set(), real(self, ctx)))
    running = in_background(sess.run, loop, feeds)
    assert looked.wait(SECONDS)
    sess.close()
    with pytest.raises(tf.errors.CancelledError):
        running.result(SECONDS)
