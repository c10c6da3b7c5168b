"""Pairs of words that stand near each other; expectations from samples."""

import numpy as np
import pytest

import tensorfleet as tf

WORDS = np.array([b"the", b"quick", b"brown", b"fox", b"jumps"], object)


def pairs(tokens, labels):
    return [(int(a), int(b)) for a, b in zip(tokens, labels, strict=True)]


def near(size, reach, first=0):
    places = range(first, size)
    return [(i, j) for i in places for j in places if i != j and abs(i - j) <= reach]


def test_neighbours_on_both_sides(session):
    sample = tf.contrib.text.skip_gram_sample
    assert pairs(*session.run(sample(tf.range(5), 2, 2))) == near(5, 2)
    assert pairs(*session.run(sample(tf.range(9), 1, 1, start=2, limit=3))) == near(5, 1, 2)
    with_self = pairs(*session.run(sample(tf.range(3), 1, 1, emit_self_as_target=True)))
    assert with_self == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="min_skips must be"):
        session.run(sample(tf.range(5), 3, 2))


def test_a_random_number_of_neighbours(session):
    result = tf.contrib.text.skip_gram_sample(tf.range(50), 1, 4, seed=3)
    counts = {len(session.run(result)[0]) for _ in range(5)}
    assert len(counts) > 1 and all(100 < c < 400 for c in counts)


def test_rare_words_are_left_out(session, tmp_path):
    (tmp_path / "words").write_text("brown,1\nfox,50\nthe,90\nquick,5\n")
    tokens, labels = tf.contrib.text.skip_gram_sample_with_text_vocab(
        tf.constant(WORDS), str(tmp_path / "words"), vocab_min_count=5, min_skips=1, max_skips=1
    )
    session.run(tf.tables_initializer())
    result = session.run([tokens, labels])
    # "brown" is too rare and "jumps" is not known: their neighbours meet.
    assert list(zip(*result, strict=True)) == [
        (b"the", b"quick"),
        (b"quick", b"the"),
        (b"quick", b"fox"),
        (b"fox", b"quick"),
    ]
    with pytest.raises(ValueError, match="should be different"):
        tf.contrib.text.skip_gram_sample_with_text_vocab(WORDS, "x", 1, vocab_freq_index=1)
    with pytest.raises(ValueError, match="useless without a vocab_freq_table"):
        tf.contrib.text.skip_gram_sample(WORDS, vocab_min_count=1)


def test_an_expectation_and_both_of_its_gradients(session):
    M = tf.contrib.bayesflow.monte_carlo
    mean = tf.constant(1.5)
    normal = tf.distributions.Normal(mean, 1.0)
    samples = normal.sample(20000, seed=1)
    moved = M.expectation(tf.square, samples)
    scored = M.expectation(tf.square, samples, normal.log_prob, use_reparametrization=False)
    values = session.run([moved, scored, *tf.gradients(moved, mean), *tf.gradients(scored, mean)])
    np.testing.assert_allclose(values, [3.25, 3.25, 3.0, 3.0], rtol=0.05)
    with pytest.raises(ValueError, match="`log_prob` must be a callable"):
        M.expectation(tf.square, samples, use_reparametrization=False)


def test_an_expectation_by_samples_of_another_distribution(session):
    M = tf.contrib.bayesflow.monte_carlo
    p, q = tf.distributions.Normal(1.0, 1.0), tf.distributions.Normal(0.0, 2.0)
    value = M.expectation_importance_sampler(tf.identity, p.log_prob, q, n=50000, seed=1)
    log = M.expectation_importance_sampler_logspace(
        lambda x: 2 * tf.log(tf.abs(x)), p.log_prob, q, n=50000, seed=2
    )
    np.testing.assert_allclose(session.run([value, tf.exp(log)]), [1.0, 2.0], atol=0.05)
    with pytest.raises(ValueError, match="exactly one"):
        M.expectation_importance_sampler(tf.identity, p.log_prob, q)
