"""Recurrent networks compared with TensorFlow, with cells written by hand (TensorFlow 2.21 has lost its own)."""

import numpy as np
import pytest

import tensorfleet as fleet


class Cell:
    """A small LSTM of plain operations, usable in both libraries."""

    def __init__(self, tf, units=3):
        self.tf, self.units = tf, units
        self.state_size = (units, units)
        self.output_size = units

    def zero_state(self, batch, dtype):
        return (self.tf.zeros([batch, self.units], dtype), self.tf.zeros([batch, self.units], dtype))

    def __call__(self, x, state, scope=None):
        tf = self.tf
        c, h = state
        depth = x.shape.as_list()[-1] + self.units
        start = np.linspace(-0.5, 0.5, depth * 4 * self.units, dtype=np.float32).reshape(depth, -1)
        w = tf.get_variable("w", initializer=start)
        i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), w), 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, (c, h)


def data(*shape):
    return np.random.RandomState(7).randn(*shape).astype(np.float32)


def dynamic(tf):
    x = tf.placeholder(tf.float32, [4, 5, 2])
    out, state = tf.nn.dynamic_rnn(Cell(tf), x, dtype=tf.float32)
    return [out, *state], x, data(4, 5, 2)


def dynamic_with_lengths(tf):
    x = tf.placeholder(tf.float32, [None, None, 2])
    out, state = tf.nn.dynamic_rnn(Cell(tf), x, sequence_length=[3, 1, 2, 0], dtype=tf.float32)
    return [out, *state], x, data(4, 5, 2)


def dynamic_time_major(tf):
    x = tf.placeholder(tf.float32, [5, None, 2])
    start = (tf.ones([4, 3]), tf.ones([4, 3]) * 0.5)
    out, state = tf.nn.dynamic_rnn(Cell(tf), x, initial_state=start, time_major=True)
    return [out, *state], x, data(5, 4, 2)


def both_ways(tf):
    x = tf.placeholder(tf.float32, [4, 5, 2])
    outs, states = tf.nn.bidirectional_dynamic_rnn(
        Cell(tf), Cell(tf, 2), x, sequence_length=tf.constant([3, 1, 5, 2]), dtype=tf.float32
    )
    return [*outs, *states[0], *states[1]], x, data(4, 5, 2)


def static(tf):
    x = tf.placeholder(tf.float32, [4, 5, 2])
    outs, state = tf.nn.static_rnn(Cell(tf), tf.unstack(x, axis=1), dtype=tf.float32)
    return [*outs, *state], x, data(4, 5, 2)


def static_with_lengths(tf):
    x = tf.placeholder(tf.float32, [4, 5, 2])
    outs, state = tf.nn.static_rnn(
        Cell(tf), tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=[3, 1, 2, 1]
    )
    return [*outs, *state], x, data(4, 5, 2)


def static_both_ways(tf):
    x = tf.placeholder(tf.float32, [4, 5, 2])
    outs, a, b = tf.nn.static_bidirectional_rnn(
        Cell(tf), Cell(tf), tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=[3, 1, 2, 4]
    )
    return [*outs, *a, *b], x, data(4, 5, 2)


def raw(tf):
    x = tf.placeholder(tf.float32, [5, 4, 2])
    array = tf.TensorArray(tf.float32, 5, clear_after_read=False).unstack(x)
    lengths = tf.constant([3, 1, 5, 2])
    cell = Cell(tf)

    def loop(time, output, state, loop_state):
        new = cell.zero_state(4, tf.float32) if output is None else state
        done = time >= lengths
        over = tf.reduce_all(done)
        following = tf.cond(over, lambda: tf.zeros([4, 2]), lambda: array.read(time))
        return done, following, new, output, None

    outs, state, _ = tf.nn.raw_rnn(cell, loop)
    return [outs.stack(), *state], x, data(5, 4, 2)


CASES = [dynamic, dynamic_with_lengths, dynamic_time_major, both_ways, static, static_with_lengths]
CASES += [static_both_ways, raw]


def run(tf, build):
    graph = tf.Graph()
    with graph.as_default():
        fetches, x, value = build(tf)
        loss = sum(tf.reduce_sum(t * t) for t in fetches)
        grads = tf.gradients(loss, [x, *tf.trainable_variables()])
        nodes = [(o.name, o.type) for o in graph.get_operations() if not o.name.startswith("gradients")]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(5):
                values = session.run([*fetches, *grads], {x: value})
        return values, nodes, [v.name for v in tf.trainable_variables()]


@pytest.mark.parametrize("build", CASES, ids=lambda f: f.__name__)
def test_outputs_states_and_gradients_are_the_same(tensorflow, build):
    tensorflow.disable_control_flow_v2()
    theirs, _, names = run(tensorflow, build)
    ours, _, our_names = run(fleet, build)
    assert our_names == names
    for a, b in zip(ours, theirs, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=5e-5, atol=2e-6)


@pytest.mark.parametrize("build", [dynamic, dynamic_with_lengths], ids=lambda f: f.__name__)
def test_loops_have_the_same_nodes(tensorflow, build):
    tensorflow.disable_control_flow_v2()
    _, theirs, _ = run(tensorflow, build)
    _, ours, _ = run(fleet, build)
    ours, theirs = ([n for n in nodes if n[0].startswith("rnn/while/")] for nodes in (ours, theirs))
    ours, theirs = ([n for n in nodes if n[1] not in ("Const",)] for nodes in (ours, theirs))
    assert ours == theirs
