"""Batches of elements that are alike."""

import pytest

import tensorfleet as tf

training = tf.contrib.training


def batches(session, taken):
    """All that comes out until the input ends."""
    result = []
    coordinator = tf.train.Coordinator()
    session.run([tf.local_variables_initializer(), tf.global_variables_initializer()])
    threads = tf.train.start_queue_runners(session, coordinator)
    with pytest.raises(tf.errors.OutOfRangeError):
        while True:
            result.append(session.run(taken))
    coordinator.request_stop()
    coordinator.join(threads)
    return result


def numbers(count):
    return tf.train.range_input_producer(count, num_epochs=1, shuffle=False).dequeue()


def test_elements_of_a_bucket_come_together(session):
    n = numbers(8)
    taken = training.bucket({"n": n, "text": tf.as_string(n)}, n % 2, [2, 4], 2)
    result = batches(session, taken)
    assert sorted((int(which), batch["n"].tolist()) for which, batch in result) == [
        (0, [0, 2]),
        (0, [4, 6]),
        (1, [1, 3, 5, 7]),
    ]
    assert all([int(t) for t in batch["text"]] == batch["n"].tolist() for _, batch in result)


def test_lengths_up_to_a_boundary_come_together_and_are_padded(session):
    n = numbers(7)
    taken = training.bucket_by_sequence_length(
        n,
        [tf.range(n)],
        2,
        [2, 5],
        dynamic_pad=True,
        allow_smaller_final_batch=True,
        bucket_capacities=[4, 5, 6],
    )
    assert [t.shape.as_list() for t in (taken[0], *taken[1])] == [[None], [None, None]]
    result = batches(session, taken)
    assert sorted(sorted(lengths.tolist()) for lengths, _ in result) == [[0, 1], [2, 3], [4], [5, 6]]
    for lengths, (rows,) in result:
        assert rows.shape == (len(lengths), max(lengths))
        assert all(
            row.tolist() == [*range(k), *[0] * (len(row) - k)] for k, row in zip(lengths, rows, strict=True)
        )


def test_what_is_not_to_be_kept_stays_out(session):
    n = numbers(6)
    result = batches(session, training.bucket([n], 0, 2, 1, keep_input=n > 1))
    assert [batch[0].tolist() for _, batch in result] == [[2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("boundaries", "options", "error", "message"),
    [
        (3, {}, TypeError, "must be a list or tuple"),
        ([], {}, ValueError, "must not be empty"),
        ([1.5], {}, TypeError, "must be integers"),
        ([3, 3], {}, ValueError, "sequential increasing lengths"),
        ([3], {"bucket_capacities": [1]}, ValueError, "must have exactly num_buckets"),
    ],
)
def test_wrong_buckets_are_refused(boundaries, options, error, message):
    with pytest.raises(error, match=message):
        training.bucket_by_sequence_length(tf.constant(1), [tf.constant(1)], 2, boundaries, **options)
