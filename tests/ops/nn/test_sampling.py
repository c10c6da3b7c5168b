"""Candidate samplers; the numbers they draw are compared with TensorFlow's elsewhere."""

import numpy as np
import pytest

import tensorfleet as tf

TRUE = np.array([[1], [5], [300]])


@pytest.mark.parametrize("kind", ["uniform", "log_uniform", "learned_unigram"])
def test_unique_samples_with_their_expected_counts(session, kind):
    sampler = getattr(tf.nn, f"{kind}_candidate_sampler")
    sampled, true_count, count = sampler(TRUE, 1, 20, True, 1000, seed=3)
    assert [t.shape.as_list() for t in (sampled, true_count, count)] == [[20], [3, 1], [20]]
    drawn, _, expected = session.run([sampled, true_count, count])
    assert len(set(drawn.tolist())) == 20 and drawn.min() >= 0 and drawn.max() < 1000
    assert ((expected > 0) & (expected <= 1)).all()
    again = session.run(sampled)
    assert drawn.tolist() != again.tolist()


def test_a_seed_repeats_the_sample():
    results = []
    for _ in range(2):
        with tf.Graph().as_default(), tf.Session() as s:
            results.append(
                s.run(tf.nn.log_uniform_candidate_sampler(TRUE, 1, 8, True, 400, seed=3)[0]).tolist()
            )
    assert results[0] == results[1]


def test_all_candidates_are_all_classes(session):
    sampled, true_count, _ = tf.nn.all_candidate_sampler(TRUE, 1, 400, True)
    drawn, counts = session.run([sampled, true_count])
    np.testing.assert_array_equal(drawn, np.arange(400))
    np.testing.assert_array_equal(counts, np.ones([3, 1]))


def test_fixed_unigrams_never_draw_a_class_of_no_weight(session):
    weights = [0.0, 1.0] * 50
    sampled, _, _ = tf.nn.fixed_unigram_candidate_sampler(TRUE % 50, 1, 30, False, 100, unigrams=weights)
    assert (session.run(sampled) % 2 == 1).all()


def test_fixed_unigrams_from_a_file(session, tmp_path):
    path = tmp_path / "vocabulary"
    path.write_text("a,1\nb,2\nc,3\n")
    sampled, _, _ = tf.nn.fixed_unigram_candidate_sampler([[0]], 1, 3, True, 3, vocab_file=str(path))
    assert sorted(session.run(sampled).tolist()) == [0, 1, 2]


def test_what_cannot_be_sampled_is_refused(session):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Sampler's range is too small"):
        session.run(tf.nn.uniform_candidate_sampler([[1]], 1, 20, True, 10))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have num_true columns"):
        session.run(tf.nn.uniform_candidate_sampler([[1]], 2, 5, True, 10))


def test_accidental_hits(session):
    rows, places, weights = session.run(
        tf.nn.compute_accidental_hits(np.array([[1, 2], [5, 6]]), np.array([5, 2, 1, 6, 9]), 2)
    )
    np.testing.assert_array_equal(rows, [0, 0, 1, 1])
    np.testing.assert_array_equal(places, [2, 1, 0, 3])
    assert (weights == np.finfo(np.float32).min).all() and rows.dtype == np.int32
