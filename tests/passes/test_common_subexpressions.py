"""What the host would compute twice it computes once."""

import numpy as np

import tensorfleet as tf


def kinds(session, fetches, *feeds):
    """The kinds of the parts that each operation of a run belongs to, by name."""
    parts = session._prepare(fetches, dict.fromkeys(feeds)).program.plan.parts
    return {op.name: part.kind for part in parts for op in part.ops}


def test_a_chain_of_equal_operations_on_one_input_runs_once(session):
    words = tf.placeholder(tf.string, [None])
    chains = [
        tf.unique(tf.string_to_hash_bucket_fast(words, 100, name=f"hash{i}"), name=f"unique{i}")
        for i in (0, 1)
    ]
    totals = [tf.reduce_sum(y) + tf.cast(tf.reduce_sum(i), tf.int64) for y, i in chains]
    result = kinds(session, totals, words)
    assert (result["hash0"], result["unique0"]) == ("host", "host")
    assert (result["hash1"], result["unique1"]) == ("same", "same")
    one, other = session.run(totals, {words: [b"a", b"b", b"a"]})
    assert one == other


def test_other_attributes_arguments_or_constants_make_another_operation(session):
    words = tf.placeholder(tf.string, [None])
    others = tf.placeholder(tf.string, [None])
    results = [
        tf.string_to_hash_bucket_fast(words, 100, name="a"),
        tf.string_to_hash_bucket_fast(words, 101, name="b"),
        tf.string_to_hash_bucket_fast(others, 100, name="c"),
        tf.cast(tf.equal(words, "x", name="d"), tf.int64),
        tf.cast(tf.equal(words, "y", name="e"), tf.int64),
        tf.cast(tf.equal(words, "x", name="f"), tf.int64),
    ]
    sums = [tf.reduce_sum(r) for r in results]
    result = kinds(session, sums, words, others)
    assert [result[name] for name in "abcdef"] == ["joined"] * 3 + ["host"] * 2 + ["same"]
    values = session.run(sums, {words: [b"x", b"x", b"y"], others: [b"z"]})
    assert values[3:] == [2, 1, 2]


def test_operations_that_take_something_are_not_shared(session):
    queue = tf.FIFOQueue(10, tf.string, [[]])
    session.run(queue.enqueue_many([[b"a", b"b"]]))
    values = [tf.string_join([queue.dequeue(), "!"]) for _ in range(2)]
    assert sorted(session.run([tf.string_join([v, "?"]) for v in values])) == [b"a!?", b"b!?"]


def test_fetched_results_are_arrays_of_their_own(session):
    words = tf.placeholder(tf.string, [None])
    a, b = (tf.string_to_hash_bucket_fast(words, 10) for _ in range(2))
    one, other = session.run([a, b], {words: [b"p", b"q"]})
    one[0] = 99
    assert other[0] != 99
    np.testing.assert_array_equal(one[1:], other[1:])


def test_an_operation_of_a_branch_does_not_stand_for_one_that_always_runs(session):
    words = tf.placeholder(tf.string, [None])
    yes = tf.placeholder(tf.bool, [])
    inside = tf.cond(
        yes,
        lambda: tf.reduce_sum(tf.string_to_hash_bucket_fast(words, 10)),
        lambda: tf.constant(-1, tf.int64),
    )
    outside = tf.reduce_sum(tf.string_to_hash_bucket_fast(words, 10))
    taken = session.run([inside, outside], {words: [b"p", b"q"], yes: True})
    assert taken[0] == taken[1]
    skipped = session.run([inside, outside], {words: [b"p", b"q"], yes: False})
    assert skipped == [-1, taken[1]]


def test_what_the_host_computes_once_is_one_argument_of_a_compiled_program(session):
    words = tf.placeholder(tf.string, [None])
    a, b = (tf.string_to_hash_bucket_fast(words, 100, name=name) for name in "ab")
    total = tf.add(a * 2, b * 3)
    program = session._prepare(total, {words: None}).program
    (segment,) = [item.segment for item in program.items if hasattr(item, "segment")]
    assert len(segment.inputs) == 1
    fed = {words: [b"one", b"two"]}
    for _ in range(3):
        np.testing.assert_array_equal(session.run(total, fed), session.run(a, fed) * 5)
