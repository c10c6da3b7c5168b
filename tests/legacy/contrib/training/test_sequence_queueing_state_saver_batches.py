"""Batches of segments that queue runners fill."""

import numpy as np
import pytest

import tensorfleet as tf

PLACE = tf.contrib.training.python.training.sequence_queueing_state_saver


def segments(session, batch, steps):
    """What `steps` batches have, while the queue runners run."""
    state = batch.state("state")
    fetches = {
        "key": batch.key,
        "length": batch.length,
        "sequences": dict(batch.sequences),
        "context": dict(batch.context),
        "state": state,
        "saved": batch.save_state("state", state + 1),
    }
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    try:
        return [session.run(fetches) for _ in range(steps)]
    finally:
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=60)


def key():
    """A new name for each sequence."""
    return tf.train.string_input_producer([f"k{i}" for i in range(50)], shuffle=False).dequeue()


def batches(sequences, length=None, steps=3, context=None, **more):
    states = {"state": tf.zeros([1])}
    return tf.contrib.training.batch_sequences_with_states(
        key(), sequences, context or {}, length, states, steps, 2, capacity=2, **more
    )


def test_sequences_are_filled_up_to_whole_segments(session):
    given = np.arange(8.0).reshape(4, 2)
    first, second = segments(session, batches({"x": given}), 2)
    assert first["sequences"]["x"].tolist() == [given[:3].tolist()] * 2
    assert second["sequences"]["x"].tolist() == [[[6, 7], [0, 0], [0, 0]]] * 2
    assert first["length"].tolist() == [3, 3] and second["length"].tolist() == [1, 1]
    assert first["state"].tolist() == [[0], [0]] and second["state"].tolist() == [[1], [1]]


@pytest.mark.parametrize("known", [True, False])
def test_without_padding_a_length_must_be_a_multiple(session, known):
    x = tf.constant(np.zeros([4, 1]))
    message = (
        "Tensor x first dimension should be a multiple of: 3, but saw value: 4. Consider setting pad=True."
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        batch = batches({"x": x if known else tf.placeholder_with_default(x, [None, 1])}, 4, pad=False)
        segments(session, batch, 1)


def test_sparse_tensors_come_back_in_segments(session):
    steps = tf.SparseTensor([[0, 0], [1, 1], [3, 2]], [1.0, 2.0, 3.0], [4, 4])
    whole = tf.SparseTensorValue(np.array([[0], [3]]), np.array(["a", "b"]), np.array([5]))
    given = {"whole": whole}
    batch = batches({"x": np.zeros([4, 1]), "steps": steps}, 4, steps=2, context=given, pad=False)
    first, second = segments(session, batch, 2)
    assert first["sequences"]["steps"].indices.tolist() == [[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1]]
    assert first["sequences"]["steps"].values.tolist() == [1, 2, 1, 2]
    assert first["sequences"]["steps"].dense_shape.tolist() == [2, 2, 4]
    assert second["sequences"]["steps"].indices.tolist() == [[0, 1, 2], [1, 1, 2]]
    for item in (first, second):
        assert item["context"]["whole"].indices.tolist() == [[0, 0], [0, 3], [1, 0], [1, 3]]
        assert item["context"]["whole"].values.tolist() == [b"a", b"b", b"a", b"b"]
        assert item["context"]["whole"].dense_shape.tolist() == [2, 5]
    assert list(given) == ["whole"], "the caller's dictionary stays as it was"


def test_keys_can_be_made_different_from_each_other(session):
    states = {"state": tf.zeros([1])}
    batch = tf.contrib.training.batch_sequences_with_states(
        "same", {"x": [[1.0]]}, {}, None, states, 1, 4, make_keys_unique=True, make_keys_unique_seed=3
    )
    (result,) = segments(session, batch, 1)
    assert len(set(result["key"])) == 4
    assert all(k.startswith(b"00000_of_00001:same") for k in result["key"])


def test_only_sparse_sequences_have_the_longest_ones_length(session):
    a = tf.SparseTensor([[0, 0]], [1.0], [2, 3])
    b = tf.SparseTensor([[0]], [1.0], [3])
    length, result = PLACE._padding({"a": a, "b": b}, 2)
    assert session.run([length, result["a"].dense_shape, result["b"].dense_shape])[0] == 3
    assert session.run(result["a"]).dense_shape.tolist() == [4, 3]


def test_padding_is_zeros_or_empty_texts(session):
    _, result = PLACE._padding({"n": [1, 2], "t": ["a", "b"]}, 3)
    assert session.run(result["n"]).tolist() == [1, 2, 0]
    assert session.run(result["t"]).tolist() == [b"a", b"b", b""]
    assert PLACE._padding({}, 3) == (0, {})


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (({"x": [1]}, 1.5), ValueError, "Unsupported num_unroll expected int, got: 1.5"),
        (([1], 2), TypeError, "Unsupported sequences expected dict"),
        (({3: [1]}, 2), TypeError, "Unsupported sequences key expected string, got: 3"),
    ],
)
def test_what_cannot_be_padded_is_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        PLACE._padding(*arguments)


def test_sequences_of_different_lengths_are_refused(session):
    _, result = PLACE._padding({"a": tf.constant([1, 2]), "b": tf.constant([1])}, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="All sequence lengths must match, but received"):
        session.run(result["a"])
