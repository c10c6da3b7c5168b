"""Beam search of all sequences of a batch at a time: the same as of each alone, and as the definition."""

import itertools

import numpy as np
import pytest

from tensorfleet.kernels import ctc_beams
from tensorfleet.kernels.ctc import log_softmax


def all_sums(scores, blank):
    """The log probability of every label sequence: the sum over all paths that collapse to it."""
    result = {}
    for path in itertools.product(range(blank + 1), repeat=len(scores)):
        labels = tuple(x for i, x in enumerate(path) if x != blank and (i == 0 or path[i - 1] != x))
        result[labels] = np.logaddexp(
            result.get(labels, -np.inf), sum(s[x] for s, x in zip(scores, path, strict=True))
        )
    return result


@pytest.mark.parametrize("seed", range(6))
def test_a_wide_beam_finds_the_most_probable_sequences(seed):
    inputs = np.random.RandomState(seed).randn(5, 1, 3) * (1 + seed)
    decoded, probabilities = ctc_beams.beam_search(inputs, np.array([5]), 400, 3, False)
    wanted = sorted(all_sums(log_softmax(inputs)[:, 0], 2).items(), key=lambda item: -item[1])[:3]
    assert [tuple(path[0]) for path in decoded] == [labels for labels, _ in wanted]
    np.testing.assert_allclose(probabilities[0], [p for _, p in wanted])


@pytest.mark.parametrize("width", [1, 4, 30])
@pytest.mark.parametrize("at_once", [1, 1 << 18])
def test_a_batch_is_searched_as_each_of_its_sequences(width, at_once, monkeypatch):
    draw = np.random.RandomState(3)
    inputs, lengths = np.round(draw.randn(9, 7, 4) * 2), draw.randint(0, 10, 7)
    alone = [
        ctc_beams.beam_search(inputs[:, b : b + 1], lengths[b : b + 1], width, 1, True) for b in range(7)
    ]
    monkeypatch.setattr(ctc_beams, "_MAX_TABLE_ELEMENTS", at_once)
    decoded, probabilities = ctc_beams.beam_search(inputs, lengths, width, 1, True)
    assert decoded[0] == [one[0][0][0] for one in alone]
    np.testing.assert_array_equal(probabilities, [one[1][0] for one in alone])


def test_fewer_sequences_than_paths_leave_the_others_empty():
    decoded, probabilities = ctc_beams.beam_search(np.zeros((1, 2, 2)), np.array([1, 0]), 5, 3, False)
    assert decoded == [[[], []], [[0], []], [[], []]]
    np.testing.assert_allclose(probabilities, [[np.log(0.5)] * 2 + [0], [0, 0, 0]])
