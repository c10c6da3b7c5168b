"""`tf.contrib.seq2seq`."""

import numpy as np
import pytest

import tensorfleet as tf

WEIGHTS = np.array([[1.0, 1.0, 0.0], [2.0, 0.0, 0.0]], np.float32)


def _loss(**how):
    random = np.random.RandomState(0)
    logits = random.randn(2, 3, 4).astype(np.float32)
    targets = random.randint(0, 4, [2, 3])
    result = tf.contrib.seq2seq.sequence_loss(tf.constant(logits), tf.constant(targets), WEIGHTS, **how)
    scaled = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    costs = -np.log(np.take_along_axis(scaled, targets[..., None], -1))[..., 0] * WEIGHTS
    with tf.Session() as session:
        return session.run(result), costs


@pytest.mark.parametrize(
    ("time", "batch", "expected"),
    [
        ("average", "average", lambda c: c.sum() / WEIGHTS.sum()),
        ("average", None, lambda c: c.sum(1) / WEIGHTS.sum(1)),
        (None, "average", lambda c: c.sum(0) / (WEIGHTS.sum(0) + 1e-12)),
        (None, None, lambda c: c),
        ("sum", "sum", lambda c: c.sum() / 3),
        ("sum", None, lambda c: c.sum(1) / [2, 1]),
    ],
)
def test_sequence_loss_is_reduced_as_asked(time, batch, expected):
    got, costs = _loss(
        average_across_timesteps=time == "average",
        average_across_batch=batch == "average",
        sum_over_timesteps=time == "sum",
        sum_over_batch=batch == "sum",
    )
    np.testing.assert_allclose(got, expected(costs), rtol=1e-5)


def test_sequence_loss_says_what_it_cannot_do():
    with pytest.raises(ValueError, match="cannot be set to True at same time"):
        _loss(sum_over_batch=True)
    with pytest.raises(ValueError, match="Logits must be"):
        tf.contrib.seq2seq.sequence_loss(tf.zeros([2, 3]), tf.zeros([2, 3], tf.int32), tf.zeros([2, 3]))


def test_the_modules_inside_have_the_public_names():
    from tensorfleet.contrib.lookup import lookup_ops
    from tensorfleet.contrib.seq2seq.python.ops import (
        attention_wrapper,
        basic_decoder,
        decoder,
        helper,
        loss,
    )

    assert attention_wrapper.BahdanauAttention is tf.contrib.seq2seq.BahdanauAttention
    assert basic_decoder.BasicDecoder is tf.contrib.seq2seq.BasicDecoder
    assert decoder.dynamic_decode is tf.contrib.seq2seq.dynamic_decode
    assert helper.TrainingHelper is tf.contrib.seq2seq.TrainingHelper
    assert loss.sequence_loss is tf.contrib.seq2seq.sequence_loss
    assert lookup_ops.MutableHashTable is tf.contrib.lookup.MutableHashTable
