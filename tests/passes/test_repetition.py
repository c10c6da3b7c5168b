"""Where a block of operations repeats, and how that cuts a plan into segments."""

import pytest

import tensorfleet as tf
from tensorfleet.passes.repetition import Stretch, find_repetitions, numbered
from tensorfleet.passes.segment_sizes import _MAX_SEGMENT_OPS


def found(tokens, used=()):
    """The stretches of operations with these tokens; each makes one value, and some are used at the end."""
    outs = [[i] for i in range(len(tokens))]
    last_use = {i: i + 1 for i in range(len(tokens))} | dict.fromkeys(used, len(tokens))
    return find_repetitions(numbered(tokens), outs, last_use)


def test_a_block_that_repeats_is_found_between_others():
    assert found([*"xy", *"ab" * 50, *"yx"]) == [Stretch(2, 2, 50)]


def test_a_block_may_have_repetitions_inside():
    (stretch,) = found("aabaac" * 30)
    assert stretch.period == 6
    assert stretch.rounds >= 28


def test_two_blocks_are_two_stretches():
    assert found("ab" * 40 + "cde" * 40) == [Stretch(0, 2, 40), Stretch(80, 3, 40)]


@pytest.mark.parametrize("tokens", ["ab" * 20, "a" * 30 + "b" * 30, [None] * 200, [[]] * 200])
def test_short_stretches_and_operations_that_must_not_repeat_are_left_alone(tokens):
    assert found(tokens) == []


def test_a_stretch_ends_where_its_result_is_used_later():
    assert found("ab" * 100, used=[101, 199]) == [Stretch(0, 2, 51), Stretch(102, 2, 49)]


def test_a_block_whose_every_round_is_used_later_is_no_loop():
    assert found("ab" * 100, used=range(1, 200, 2)) == []


def _parts(fetched, x):
    with tf.Session() as sess:
        return [len(part.ops) for part in sess._plan(fetched, [x]).program.plan.parts]


def test_a_chain_that_repeats_is_one_segment_however_long_it_is():
    x = value = tf.placeholder(tf.float32, [4])
    for i in range(3000):
        value = value * 0.9 + float(i)
    assert _parts(value, x) == [6000]


def test_a_long_chain_that_does_not_repeat_is_cut():
    x = value = tf.placeholder(tf.float32, [4])
    makers = [tf.tanh, tf.sin, tf.negative]
    for i in range(2 * _MAX_SEGMENT_OPS + 5):
        value = makers[(i * i // 7 + i.bit_count()) % 3](value)
    assert _parts(value, x) == [_MAX_SEGMENT_OPS, _MAX_SEGMENT_OPS, 5]


def test_a_chain_whose_values_are_all_used_is_cut():
    x = value = tf.placeholder(tf.float32, [4])
    values = []
    for _ in range(_MAX_SEGMENT_OPS):
        value = tf.tanh(value * 0.9)
        values.append(value)
    assert max(_parts(tf.add_n(values), x)) <= _MAX_SEGMENT_OPS
