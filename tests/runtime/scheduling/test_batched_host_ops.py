"""Host operations of one type that are called together."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph import registry
from tensorfleet.runtime.scheduling.batched_host_ops import JoinedItem


def _uniques(session, count=3):
    vectors = [tf.placeholder(tf.int64, name=f"column{n}") for n in range(count)]
    found = [tf.unique(x, name=f"unique{n}") for n, x in enumerate(vectors)]
    items = session._plan(found, vectors).program.items
    assert any(isinstance(item, JoinedItem) for item in items)
    return vectors, found


def test_each_gives_what_it_would_alone(session):
    vectors, found = _uniques(session)
    given = [[3, 1, 3], [7], [5, 5, 4, 5]]
    made = session.run(found, dict(zip(vectors, given, strict=True)))
    assert [[y.tolist(), index.tolist()] for y, index in made] == [
        [[3, 1], [0, 1, 0]],
        [[7], [0]],
        [[5, 4], [0, 0, 1, 0]],
    ]


def test_empty_and_far_apart_numbers_go_one_by_one(session):
    vectors, found = _uniques(session)
    given = [[], [1 << 60, -(1 << 60), 1 << 60], [2]]
    made = session.run(found, dict(zip(vectors, given, strict=True)))
    assert [y.tolist() for y, _ in made] == [[], [1 << 60, -(1 << 60)], [2]]


def test_the_one_that_is_given_what_it_cannot_take_is_named(session):
    vectors, found = _uniques(session)
    given = [[1], [[1, 2], [3, 4]], [2]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="1D vector") as caught:
        session.run(found, dict(zip(vectors, given, strict=True)))
    assert caught.value.op.name == "unique1"


def test_a_kernel_for_several_that_fails_leaves_them_to_run_by_themselves(session, monkeypatch):
    calls = []

    def broken(ops, given):
        calls.append(len(ops))
        raise MemoryError

    monkeypatch.setattr(registry.get("Unique"), "joined", broken)
    vectors, found = _uniques(session)
    made = session.run(found, {x: np.array([n, n]) for n, x in enumerate(vectors)})
    assert [y.tolist() for y, _ in made] == [[0], [1], [2]]
    assert calls == [3]


def _train(kind, optimizer):
    """The losses and weights of a small model of six columns, in a graph of its own."""
    random = np.random.default_rng(5)
    column = tf.feature_column.categorical_column_with_hash_bucket
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(3)
        words = {f"c{i}": _placeholder(kind) for i in range(6)}
        hashed = [column(name, 40 + i % 2) for i, name in enumerate(words)]
        embedded = [
            tf.feature_column.embedding_column(c, 4 + i % 2, ["mean", "sqrtn", "sum"][i % 3])
            for i, c in enumerate(hashed)
        ]
        logits = tf.layers.dense(tf.feature_column.input_layer(words, embedded), 1)
        loss = tf.reduce_mean(tf.square(logits + tf.feature_column.linear_model(words, hashed) - 1.0))
        step = [loss, optimizer().minimize(loss)]
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        losses = [sess.run(step, {w: _words(kind, random) for w in words.values()})[0] for _ in range(8)]
        return [losses, *sess.run(tf.global_variables())]


def _placeholder(kind):
    if kind == "sparse":
        return tf.sparse_placeholder(tf.string)
    return tf.placeholder(tf.string, [None, 3] if kind == "matrix" else [None])


def _words(kind, random):
    """Words of 30 examples, some of them missing; in a sparse column an example has none to three."""
    vocabulary = np.array([b"" if n % 9 == 0 else b"word%d" % n for n in range(50)], object)
    dense = vocabulary[random.integers(0, 50, (30, 3))]
    if kind == "sparse":
        places = np.argwhere(random.random((30, 3)) < 0.5)
        return tf.SparseTensorValue(places, dense[tuple(places.T)], [30, 3])
    return dense if kind == "matrix" else dense[:, 0]


@pytest.mark.parametrize("optimizer", [tf.train.AdagradOptimizer, tf.train.FtrlOptimizer])
@pytest.mark.parametrize("kind", ["vector", "matrix", "sparse"])
def test_columns_called_together_are_trained_to_the_same_bits_as_one_by_one(kind, optimizer, monkeypatch):
    together = _train(kind, lambda: optimizer(0.1))
    calls = []
    monkeypatch.setattr(JoinedItem, "_together", lambda self, values: calls.append(self.name))
    alone = _train(kind, lambda: optimizer(0.1))
    assert calls
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_row_that_is_not_there_is_named_and_no_table_has_changed(session):
    tables = [tf.get_variable(f"table{n}", [40_000, 2], initializer=tf.ones_initializer()) for n in range(2)]
    ids = [tf.placeholder(tf.int64, [None], f"ids{n}") for n in range(2)]
    rows = [
        tf.gather(t, tf.unique(i)[0], name=f"rows{n}")
        for n, (t, i) in enumerate(zip(tables, ids, strict=True))
    ]
    session.run(tf.global_variables_initializer())
    found = session.run(rows, {ids[0]: [3, 3], ids[1]: [4]})
    assert [r.tolist() for r in found] == [[[1.0, 1.0]], [[1.0, 1.0]]]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"indices\[1\] = 40000 is not in \[0, 40000\)"
    ) as caught:
        session.run(rows, {ids[0]: [3], ids[1]: [4, 40_000]})
    assert caught.value.op.name == "rows1"


def test_gathers_of_a_table_come_before_and_after_its_update_as_they_were_made(session):
    table = tf.get_variable("table", [40_000, 2], initializer=tf.ones_initializer())
    other = tf.get_variable("other", [40_000, 2], initializer=tf.ones_initializer())
    ids = tf.placeholder(tf.int64, [None])
    before = [tf.gather(t, ids) for t in (table, other)]
    with tf.control_dependencies(before):
        updates = [tf.scatter_add(t, ids, tf.ones([1, 2])) for t in (table, other)]
    with tf.control_dependencies(updates):
        after = [tf.gather(t, ids) for t in (table, other)]
    session.run(tf.global_variables_initializer())
    found = session.run([before, after], {ids: [7]})
    assert [[r.tolist() for r in rows] for rows in found] == [[[[1.0, 1.0]]] * 2, [[[2.0, 2.0]]] * 2]
