"""The samplers with a variable appetite.

Expected numbers are TensorFlow 2.21's, on a CPU, for seed=87654321 and seed2=5: two executions each.
"""

import numpy as np
import pytest

from tensorfleet.kernels import philox
from tensorfleet.kernels import philox_sampling as sampling

SEEDS = (87654321, 5)


def executions(draw, reserved, count=2):
    state = philox.initial_state(*SEEDS)
    results = []
    for _ in range(count):
        results.append(draw(state))
        state = philox.skip(state, reserved)
    return results


def check_candidates(got, expected):
    for candidates, (sampled, true_count, sampled_count) in zip(got, expected, strict=True):
        assert candidates[0].dtype == np.int64
        assert candidates[0].tolist() == sampled
        assert candidates[1].dtype == candidates[2].dtype == np.float32
        np.testing.assert_allclose(candidates[1], true_count, rtol=3e-7)
        np.testing.assert_allclose(candidates[2], sampled_count, rtol=3e-7)


def test_log_uniform_candidates_are_tensorflows():
    true = np.array([[1], [7]])
    got = executions(lambda s: sampling.log_uniform_candidate_sampler(s, true, 5, True, 10), 5 * 512)
    # fmt: off
    check_candidates(got, [
        ([0, 2, 4, 1, 7], [[0.77279222], [0.331643581]],
         [0.93474108, 0.640276372, 0.468812376, 0.77279222, 0.331643581]),
        ([0, 2, 1, 6, 4], [[0.726554811], [0.297118545]],
         [0.90820688, 0.591235816, 0.726554811, 0.330405235, 0.425100505]),
    ])
    # fmt: on


def test_uniform_candidates_are_tensorflows():
    true = np.array([[1], [7]])
    got = executions(lambda s: sampling.uniform_candidate_sampler(s, true, 5, True, 10), 5 * 512)
    again = 0.46855899691581726
    check_candidates(
        got,
        [([5, 8, 6, 1, 0], [[0.5]] * 2, [0.5] * 5), ([5, 8, 9, 6, 2], [[again]] * 2, [again] * 5)],
    )


def test_learned_unigrams_follow_the_true_classes_of_earlier_executions():
    true, weights = np.array([[1], [7]]), sampling.initial_unigram_weights(10)
    got = executions(lambda s: sampling.learned_unigram_candidate_sampler(s, true, 5, True, weights), 5 * 512)
    first, once, twice = 0.5695328116416931, 0.4166666865348816, 0.8333333730697632
    check_candidates(
        got,
        [
            ([1, 9, 4, 2, 7], [[first]] * 2, [first] * 5),
            ([9, 7, 8, 4, 6], [[twice]] * 2, [once, twice, once, once, once]),
        ],
    )
    assert weights.tolist() == [1, 3, 1, 1, 1, 1, 1, 3, 1, 1]


def test_fixed_unigrams_are_tensorflows():
    true = np.array([[1], [3]])
    unigrams = sampling.Unigrams([1, 2, 3, 4], distortion=0.5, num_reserved_ids=1)
    got = executions(lambda s: sampling.fixed_unigram_candidate_sampler(s, true, 3, True, unigrams), 3 * 512)
    # fmt: off
    check_candidates(got, [
        ([4, 3, 2], [[0.508500099], [0.7339468]],
         [0.792898595, 0.7339468, 0.648639739]),
        ([4, 3, 2], [[0.758427858], [0.92921567]],
         [0.957108974, 0.92921567, 0.876545966]),
    ])
    # fmt: on


def test_all_candidates_come_once_each():
    sampled, true_count, sampled_count = sampling.all_candidate_sampler(np.array([[1, 2]]), 4)
    assert (sampled.tolist(), true_count.tolist(), sampled_count.tolist()) == (
        [0, 1, 2, 3],
        [[1, 1]],
        [1] * 4,
    )


@pytest.mark.parametrize(
    "sampler", [sampling.log_uniform_candidate_sampler, sampling.uniform_candidate_sampler]
)
def test_draws_kept_from_earlier_executions_are_those_made_afresh(sampler):
    def draw(state):
        return sampler(state, np.array([[3]]), 8, True, 1000)

    kept = executions(draw, 8 * 512, count=40)
    for position in (0, 1, 17, 39):
        sampling._ahead.clear()
        state = philox.skip(philox.initial_state(*SEEDS), 8 * 512 * position)
        np.testing.assert_array_equal(kept[position][0], draw(state)[0])


def test_unique_sampling_of_a_whole_range_ends_with_a_permutation():
    state = philox.initial_state(*SEEDS)
    for sampler in (sampling.log_uniform_candidate_sampler, sampling.uniform_candidate_sampler):
        sampled, _, counts = sampler(state, np.array([[0]]), 60, True, 60)
        assert sorted(sampled.tolist()) == list(range(60))
        assert (counts <= 1).all()


def test_expected_counts_come_from_a_table_or_not_with_the_same_result(monkeypatch):
    state, true = philox.initial_state(*SEEDS), np.array([[0], [5], [99]])
    for unique in (True, False):
        from_table = sampling.log_uniform_candidate_sampler(state, true, 30, unique, 100)
        monkeypatch.setattr(sampling, "_MAX_TABLE_CLASSES", 10)
        for one, other in zip(
            from_table, sampling.log_uniform_candidate_sampler(state, true, 30, unique, 100), strict=True
        ):
            np.testing.assert_array_equal(one, other)
        monkeypatch.undo()


def test_rejected_slots_shift_what_follows():
    assert list(sampling._pairs_without([9, 1, 8, 7, 2, 0, 6, 5], rejected=3)) == [(9, 8), (7, 6)]
