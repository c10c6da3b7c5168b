"""Host operations of one type that need nothing of each other are called together."""

import numpy as np
import pytest

import tensorfleet as tf


def parts(session, fetches, *feeds):
    """The names of the operations that each part of a run calls together."""
    result = session._prepare(fetches, dict.fromkeys(feeds)).program.plan.parts
    return [[op.name for op in part.ops] for part in result if part.kind == "joined"]


def test_columns_are_hashed_and_numbered_together_and_each_gets_its_own(session):
    words = [tf.placeholder(tf.string, [None], f"words{i}") for i in range(3)]
    hashed = [
        tf.string_to_hash_bucket_fast(w, 10 + i, name=f"hash{i}")
        for i, w in zip(range(3), words, strict=True)
    ]
    items = [tf.unique(h, name=f"unique{i}") for i, h in enumerate(hashed)]
    assert parts(session, items, *words) == [
        ["hash0", "hash1", "hash2"],
        ["unique0", "unique1", "unique2"],
    ]
    given = [[b"a", b"bc", b"a"], [b"a long string of letters"], [b"", b"x", b"y", b"x", b"z" * 100]]
    feeds = dict(zip(words, given, strict=True))
    alone = [session.run([h, *f], feeds) for h, f in zip(hashed, items, strict=True)]
    together = session.run(items, feeds)
    for (h, y, index), (joined_y, joined_index) in zip(alone, together, strict=True):
        np.testing.assert_array_equal(joined_y, y)
        np.testing.assert_array_equal(joined_index, index)
        np.testing.assert_array_equal(joined_y[joined_index], h)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    "given",
    [
        [[5, 5, -3], [7], [2, 1, 2, 1]],
        [[5, 5, -3], [], [2, 1, 2, 1]],
        [[0, 2**31 - 1], [-(2**31), 1, 1]],
        [list(range(100, 0, -1)), [50] * 100],
    ],
)
def test_numbers_of_any_vectors_are_found_together_as_alone(session, kind, given):
    vectors = [tf.placeholder(kind, [None]) for _ in given]
    items = [tf.unique(v, tf.int64 if i else tf.int32) for i, v in enumerate(vectors)]
    assert len(parts(session, items, *vectors)) == 1
    results = session.run(items, dict(zip(vectors, given, strict=True)))
    for i, ((y, index), values) in enumerate(zip(results, given, strict=True)):
        assert y.tolist() == list(dict.fromkeys(values))
        assert y[index].tolist() == values
        assert (y.dtype, index.dtype) == (kind, np.int64 if i else np.int32)


def test_matrices_and_words_are_each_found_alone(session):
    a, b = tf.placeholder(tf.string, [None]), tf.placeholder(tf.string, [None])
    items = [tf.unique(v) for v in (a, b)]
    (one, _), (other, _) = session.run(items, {a: [b"x", b"x"], b: [b"y", b"z"]})
    assert (one.tolist(), other.tolist()) == ([b"x"], [b"y", b"z"])


def test_what_is_wrong_with_one_of_them_is_said_of_that_one(session):
    a, b = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
    results = [tf.unique(a, name="fine"), tf.unique(b, name="wrong")]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"unique expects a 1D vector(?s:.)*wrong"):
        session.run(results, {a: [1, 2], b: [[1], [2]]})


def test_one_that_needs_another_comes_after_it(session):
    words = tf.placeholder(tf.string, [None])
    first = tf.string_to_hash_bucket_fast(words, 100, name="first")
    second = tf.string_to_hash_bucket_fast(tf.as_string(first), 100, name="second")
    third = tf.string_to_hash_bucket_fast(tf.string_join([words, "!"]), 100, name="third")
    joined = parts(session, [second, third], words)
    assert joined == [["first", "third"], ["second"]]
    one, two = session.run([second, third], {words: [b"a"]})
    assert session.run(second, {words: [b"a"]}) == one
    assert session.run(third, {words: [b"a"]}) == two


def test_what_one_frees_another_waits_for_and_both_come_to_an_end(session):
    """Were the hashes of both dequeued words called together, the second dequeue would wait for ever."""
    first, second = tf.FIFOQueue(1, tf.string, [[]]), tf.FIFOQueue(1, tf.string, [[]])
    session.run(first.enqueue([b"word"]))
    one = tf.string_to_hash_bucket_fast(first.dequeue(), 1000)
    passed_on = second.enqueue([tf.as_string(one)])
    other = tf.string_to_hash_bucket_fast(second.dequeue(), 1000)
    session.run([other, passed_on], options=tf.RunOptions(timeout_in_ms=60_000))


def test_a_gather_stays_before_the_update_that_was_made_after_it(session):
    table = tf.get_variable("table", [50_000, 2], initializer=tf.ones_initializer())
    ids = [tf.placeholder(tf.int64, [None]) for _ in range(2)]
    rows = [tf.gather(table, tf.unique(i)[0]) for i in ids]
    change = tf.scatter_update(table, [7], [[5.0, 5.0]])
    session.run(table.initializer)
    result = session.run([*rows, change.op], {ids[0]: [7, 7], ids[1]: [7]})
    assert result[0].tolist() == result[1].tolist() == [[1.0, 1.0]]


def test_checks_of_each_column_do_not_keep_their_gathers_apart(session):
    tables = [tf.get_variable(f"table{i}", [50_000, 2], initializer=tf.ones_initializer()) for i in range(3)]
    columns = [tf.placeholder(tf.int64, [None], f"column{i}") for i in range(3)]
    rows = []
    for i, (table, column) in enumerate(zip(tables, columns, strict=True)):
        with tf.control_dependencies([tf.assert_less(column, np.int64(100), name=f"check{i}")]):
            ids = tf.unique(tf.identity(column))[0]
        rows.append(tf.gather(table, ids, name=f"rows{i}"))
    session.run(tf.global_variables_initializer())
    assert ["rows0", "rows1", "rows2"] in parts(session, rows, *columns)
    fed = dict(zip(columns, [[1, 1], [2], [3, 4]], strict=True))
    assert [len(found) for found in session.run(rows, fed)] == [1, 1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="check1"):
        session.run(rows, fed | {columns[1]: [100]})
