"""Sequences in segments, with states that are kept between them."""

import numpy as np
import pytest

import tensorfleet as tf


def saver(batch_size=2, steps=2, **more):
    """A saver of sequences that are fed, and what gives it one."""
    length, key = tf.placeholder(tf.int32, []), tf.placeholder(tf.string, [])
    sequences = {"in": tf.placeholder(tf.float32, [None, 3]), "out": tf.placeholder(tf.int64, [None])}
    saver = tf.contrib.training.SequenceQueueingStateSaver(
        batch_size, steps, length, key, sequences, {"whole": [7, 8]}, {"state": tf.zeros([2])}, **more
    )

    def put(session, name, rows, real=None, other=None):
        values = np.arange(rows, dtype=np.float32)
        feed = {length: rows if real is None else real, key: name}
        feed[sequences["in"]] = np.tile(values[:, None], (1, 3))
        feed[sequences["out"]] = np.arange(rows if other is None else other)
        session.run(saver.prefetch_op, feed)

    return saver, put


def test_a_sequence_comes_in_segments_that_pass_on_their_state(session):
    result, put = saver()
    batch = result.next_batch
    put(session, "a", 4, real=3)
    put(session, "b", 4)
    fetches = {
        "key": batch.key,
        "next": batch.next_key,
        "in": batch.sequences["in"][:, :, 0],
        "whole": batch.context["whole"],
        "state": batch.state("state"),
        "length": batch.length,
        "total": batch.total_length,
        "number": batch.sequence,
        "count": batch.sequence_count,
        "size": batch.batch_size,
        "index": batch.insertion_index,
        "saved": batch.save_state("state", batch.state("state") + [1, 2]),
    }
    first, second = session.run(fetches), session.run(fetches)
    assert first["key"].tolist() == [b"00000_of_00002:a", b"00000_of_00002:b"]
    assert first["next"].tolist() == second["key"].tolist() == [b"00001_of_00002:a", b"00001_of_00002:b"]
    assert second["next"].tolist() == [b"STOP:a", b"STOP:b"]
    assert first["in"].tolist() == [[0, 1]] * 2 and second["in"].tolist() == [[2, 3]] * 2
    assert first["whole"].tolist() == second["whole"].tolist() == [[7, 8]] * 2
    assert first["state"].tolist() == [[0, 0]] * 2 and second["state"].tolist() == [[1, 2]] * 2
    assert first["length"].tolist() == [2, 2] and second["length"].tolist() == [1, 2]
    assert second["total"].tolist() == [3, 4] and second["count"].tolist() == [2, 2]
    assert first["number"].tolist() == [0, 0] and second["number"].tolist() == [1, 1]
    assert first["size"] == 2 and first["index"].tolist() == [-(2**63), 1 - 2**63]
    assert session.run([result.barrier.ready_size(), result.barrier.incomplete_size()]) == [0, 0]
    assert batch.sequences["in"].shape.as_list() == [2, 2, 3]


def test_a_sequence_under_way_goes_before_those_that_came_later(session):
    result, put = saver(batch_size=1)
    batch = result.next_batch
    put(session, "long", 6)
    put(session, "short", 2)
    step = [batch.key, batch.save_state("state", batch.state("state"))]
    keys = [session.run(step)[0][0].decode().split(":")[1] for _ in range(4)]
    assert keys == ["long", "long", "long", "short"]


def test_batches_become_smaller_when_no_more_sequences_come(session):
    result, put = saver(allow_small_batch=True)
    batch = result.next_batch
    put(session, "a", 4)
    put(session, "b", 2)
    session.run(result.close())
    step = [batch.batch_size, batch.save_state("state", batch.state("state"))]
    assert [session.run(step)[0] for _ in range(2)] == [2, 1]
    with pytest.raises(tf.errors.OutOfRangeError, match="closed"):
        session.run(step)
    with pytest.raises(tf.errors.CancelledError, match="closed"):
        put(session, "c", 2)


def test_a_network_goes_on_where_the_segment_before_ended(session):
    result, put = saver(batch_size=1)
    cell = tf.nn.rnn_cell.BasicRNNCell(2)
    batch = result.next_batch
    inputs = tf.unstack(batch.sequences["in"], axis=1)
    outputs, _ = tf.nn.static_state_saving_rnn(cell, inputs, batch, "state")
    whole = tf.constant(np.tile(np.arange(4, dtype=np.float32)[None, :, None], (1, 1, 3)))
    wanted, _ = tf.nn.static_rnn(cell, tf.unstack(whole, axis=1), dtype=tf.float32)
    session.run(tf.global_variables_initializer())
    put(session, "a", 4)
    items = [session.run(outputs) for _ in range(2)]
    np.testing.assert_allclose(np.concatenate(items), session.run(wanted), rtol=1e-5)


@pytest.mark.parametrize(
    ("rows", "real", "other", "message"),
    [
        (3, None, None, "should be a multiple of: 2, but saw value: 3. Consider setting pad=True."),
        (0, None, None, "should be a multiple of: 2, but saw value: 0"),
        (2, None, 4, "Dimension 0 of tensor labeled sorted_sequences_out should be: 2, shape received: 4"),
        (2, 3, None, "Input length should be <= than length from sequences:"),
    ],
)
def test_lengths_that_do_not_fit_are_refused_when_they_come(session, rows, real, other, message):
    result, put = saver()
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        put(session, "a", rows, real, other)


def test_states_are_refused_under_wrong_names_and_of_wrong_shapes(session):
    result, put = saver(batch_size=1)
    batch = result.next_batch
    with pytest.raises(KeyError, match="state was not declared: other"):
        batch.save_state("other", [[0.0, 0.0]])
    with pytest.raises(ValueError, match="Rank check failed for .*convert_state"):
        batch.save_state("state", [0.0])
    fed = tf.placeholder(tf.float32)
    save = batch.save_state("state", fed)
    put(session, "a", 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shape of tensor .* should be: 2"):
        session.run(save, {fed: [[1.0, 2.0, 3.0]]})


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"initial_states": [1]}, TypeError, "initial_states must be a dictionary"),
        ({"initial_states": {}}, ValueError, "initial_states may not be empty"),
        ({"initial_states": {"a:b": 1.0}}, ValueError, "state name may not have a colon: 'a:b'"),
        ({"initial_states": {3: 1.0}}, TypeError, "state name must be a string: 3"),
        ({"input_sequences": {}}, ValueError, "must have at least one sequence tensor"),
        ({"input_sequences": {3: [1.0]}}, TypeError, "sequence key must be string: 3"),
        ({"input_context": {"a:b": 1.0}}, ValueError, "context key may not have a colon"),
        ({"input_length": 2.0}, TypeError, "length dtype must be int32"),
        ({"input_key": 3}, TypeError, "key dtype must be string"),
        ({"input_key": ["a"]}, ValueError, "Rank check failed for"),
        ({"capacity": 1}, ValueError, "capacity 1 needs to be >= batch_size 2"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(change, kind, message):
    given = {
        "batch_size": 2,
        "num_unroll": 1,
        "input_length": 1,
        "input_key": "key",
        "input_sequences": {"x": [[1.0]]},
        "input_context": {},
        "initial_states": {"state": 0.0},
    }
    with tf.Graph().as_default(), pytest.raises(kind, match=message):
        tf.contrib.training.SequenceQueueingStateSaver(**{**given, **change})


def test_shapes_must_be_known_and_a_batch_must_fit():
    with tf.Graph().as_default():
        unknown = tf.placeholder(tf.float32, [None, None])
        make = tf.contrib.training.SequenceQueueingStateSaver
        with pytest.raises(ValueError, match="Shape for sequence x is not fully defined"):
            make(2, 1, 1, "key", {"x": unknown}, {}, {"state": 0.0})
        with pytest.raises(ValueError, match="Shape for state s is not fully defined"):
            make(2, 1, 1, "key", {"x": [[1.0]]}, {}, {"s": unknown})
        with pytest.raises(tf.errors.InvalidArgumentError, match="capacity needs to be >= batch_size"):
            make(tf.constant(2), 1, 1, "key", {"x": [[1.0]]}, {}, {"s": 0.0}, capacity=1)


def test_operations_are_made_in_the_savers_scope():
    with tf.Graph().as_default():
        result, _ = saver(name="mine")
        names = [result.barrier.name, result.prefetch_op.name, result.next_batch.key.name]
        assert [name.split("/")[0] for name in names] == ["mine"] * 3
        assert result.prefetch_op is result.prefetch_op and result.next_batch is result.next_batch
        assert (result.name, result.batch_size, result.num_unroll) == ("mine/", 2, 2)
