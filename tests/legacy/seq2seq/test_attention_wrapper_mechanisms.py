"""Mechanisms of attention: those that only move forward, and those that scripts make themselves."""

import numpy as np
import pytest

import tensorfleet as tf

s2s = tf.contrib.seq2seq
BATCH, TIME, DEPTH, UNITS = 2, 5, 3, 4
RANDOM = np.random.RandomState(0)
P = RANDOM.uniform(0.1, 0.9, [BATCH, TIME])
BEFORE = RANDOM.dirichlet(np.ones(TIME), BATCH)
MEMORY = RANDOM.normal(size=[BATCH, TIME, DEPTH]).astype(np.float32)
QUERY = RANDOM.normal(size=[BATCH, UNITS]).astype(np.float32)


def moved(p, before):
    """The chances by walking from each place on, until the walk stops."""
    result = np.zeros_like(p)
    for row, (chances, start) in enumerate(zip(p, before, strict=True)):
        for i, share in enumerate(start):
            for j in range(i, len(start)):
                result[row, j] += share * chances[j]
                share *= 1 - chances[j]
    return result


def run(fetches):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches)


@pytest.mark.parametrize("mode", ["recursive", "parallel"])
def test_attention_walks_forward_until_it_stops(mode):
    np.testing.assert_allclose(run(s2s.monotonic_attention(P, BEFORE, mode)), moved(P, BEFORE), rtol=1e-9)


def test_hard_attention_stops_at_the_first_place_that_says_so():
    p, before = (
        np.array(x, np.float64) for x in ([[1, 0, 1, 1], [1, 0, 0, 0]], [[0, 1, 0, 0], [0, 1, 0, 0]])
    )
    np.testing.assert_array_equal(
        run(s2s.monotonic_attention(p, before, "hard")), [[0, 0, 1, 0], [0, 0, 0, 0]]
    )
    with pytest.raises(ValueError, match="mode must be 'recursive', 'parallel', or 'hard'"):
        s2s.monotonic_attention(p, before, "soft")


def test_a_safe_product_is_a_product_whose_gradient_is_finite():
    x = tf.constant([[0.5, 0.0, 0.25]])
    product = s2s.safe_cumprod(x, axis=1, exclusive=True)
    value, slope = run([product, tf.gradients(product, x)[0]])
    np.testing.assert_allclose(value, [[1, 0.5, 0]], atol=1e-6)
    assert np.isfinite(slope).all()


@pytest.mark.parametrize(
    ("kind", "place"),
    [("BahdanauMonotonicAttention", "bahdanau"), ("LuongMonotonicAttention", "luong")],
)
def test_a_mechanism_that_moves_forward_starts_at_the_first_place_and_sees_no_padding(kind, place):
    mechanism = getattr(s2s, kind)(UNITS, MEMORY, [TIME, 2], score_bias_init=-1.0)
    state = mechanism.initial_state(BATCH, tf.float32)
    np.testing.assert_array_equal(run(state), np.eye(TIME)[[0, 0]])
    alignments, after = mechanism(tf.constant(QUERY), state)
    bias = next(v for v in tf.global_variables() if v.op.name.endswith("attention_score_bias"))
    assert bias.op.name == f"{place}_monotonic_attention/attention_score_bias"
    result, kept, start = run([alignments, after, bias])
    assert start == -1.0
    np.testing.assert_array_equal(result, kept)
    assert (result[1, 2:] == 0).all() and (result[1, :2] > 0).all()
    assert result.sum() < BATCH


def test_scores_are_those_of_a_product_with_a_bias():
    mechanism = s2s.LuongMonotonicAttention(UNITS, MEMORY, mode="recursive", score_bias_init=0.5)
    alignments, _ = mechanism(tf.constant(QUERY), tf.constant(BEFORE, tf.float32))
    result, keys = run([alignments, mechanism.keys])
    p = 1 / (1 + np.exp(-(np.einsum("bd,btd->bt", QUERY, keys) + 0.5)))
    np.testing.assert_allclose(result, moved(p, BEFORE), rtol=1e-4)


def test_a_mechanism_moves_inside_a_wrapper():
    mechanism = s2s.BahdanauMonotonicAttention(UNITS, MEMORY, sigmoid_noise=1.0, normalize=True, mode="hard")
    cell = s2s.AttentionWrapper(tf.nn.rnn_cell.GRUCell(UNITS), mechanism, 6)
    inputs = RANDOM.normal(size=[BATCH, 3, 2]).astype(np.float32)
    outputs, state = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
    result, alignments = run([outputs, state.alignments])
    assert result.shape == (BATCH, 3, 6)
    assert ((alignments == 0) | (alignments == 1)).all()


class Sharpened(s2s.BahdanauAttention):
    """A mechanism as scripts make them: its own score, the probabilities of the class above."""

    def __call__(self, query, state):
        with tf.variable_scope(None, "sharpened", [query]):
            processed = self.query_layer(query) if self.query_layer else query
            energy = 3.0 * tf.reduce_sum(self._keys + tf.expand_dims(processed, 1), [2])
        alignments = self._probability_fn(energy, state)
        return alignments, alignments + state


def test_a_mechanism_of_a_script_uses_the_probabilities_of_the_class_above():
    mechanism = Sharpened(UNITS, MEMORY, [TIME, 2], name="mine")
    zeros = mechanism.initial_state(BATCH, tf.float32)
    alignments, after = mechanism(tf.constant(QUERY), zeros + 1.0)
    result, kept = run([alignments, after])
    np.testing.assert_allclose(result.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(kept, result + 1, rtol=1e-6)
    assert (result[1, 2:] == 0).all()


def test_the_base_of_mechanisms_is_known_by_its_inner_name():
    from tensorfleet.contrib.seq2seq.python.ops import attention_wrapper

    layer = tf.layers.Dense(UNITS, use_bias=False)
    mechanism = attention_wrapper._BaseAttentionMechanism(
        None, MEMORY, lambda score, _: tf.nn.softmax(score), memory_layer=layer
    )
    assert isinstance(s2s.LuongAttention(UNITS, MEMORY), attention_wrapper._BaseAttentionMechanism)
    assert mechanism.memory_layer is layer and mechanism.alignments_size == TIME
    v = np.ones(UNITS, np.float32)
    score = attention_wrapper._bahdanau_score(QUERY, mechanism.keys, v)
    result, keys = run([score, mechanism.keys])
    np.testing.assert_allclose(result, np.tanh(keys + QUERY[:, None]).sum(2), rtol=1e-5)
    with pytest.raises(TypeError, match="query_layer is not a Layer"):
        attention_wrapper._BaseAttentionMechanism("x", MEMORY, tf.nn.softmax)
