"""What only prepares indices stays with the host operations it serves."""

import numpy as np
import pytest

import tensorfleet as tf


def kinds(session, fetches, *feeds):
    """The kind of the part that each operation of a run belongs to, by name."""
    parts = session._prepare(fetches, dict.fromkeys(feeds)).program.plan.parts
    return {op.name: part.kind for part in parts for op in part.ops}


def table(name="table"):
    return tf.get_variable(name, [50_000, 4], initializer=tf.random_normal_initializer())


def test_indices_of_gathers_are_joined_outside_of_segments(session):
    a, b = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.int32, [None, 1])
    ids = tf.concat([a, tf.reshape(b, [-1])], 0, name="ids")
    result = tf.tanh(tf.nn.embedding_lookup(table(), ids), name="found")
    session.run(tf.global_variables_initializer())
    assert kinds(session, result, a, b) == {
        "Reshape": "index",
        "ids": "index",
        "embedding_lookup": "gather",
        "found": "segment",
    } | {"embedding_lookup/Identity": "segment"}
    assert session.run(result, {a: [1, 2], b: [[3], [4], [5]]}).shape == (5, 4)


def test_indices_that_only_segments_use_stay_in_them(session):
    x = tf.placeholder(tf.int32, [4])
    y = tf.reshape(x, [2, 2], name="y") * 2
    assert kinds(session, y, x)["y"] == "segment"


def test_what_the_host_gives_in_any_number_enters_a_segment_in_one_shape(session):
    values = tf.placeholder(tf.int64, [6])
    places = tf.reshape(tf.unique(values)[0], [-1, 1])
    dense = tf.sparse_to_dense(places, [10], 1.0, validate_indices=False, name="dense")
    total = tf.reduce_sum(dense * 2.0)
    assert kinds(session, total, values)["dense"] == "index"
    assert session.run(total, {values: [1, 1, 2, 2, 3, 9]}) == 8
    assert session.run(total, {values: [1] * 6}) == 2


def test_mistakes_in_indices_are_explained_as_elsewhere(session):
    ids = tf.placeholder(tf.int32, [None])
    rows = tf.nn.embedding_lookup(table(), tf.reshape(ids, [2, 2], name="square"))
    session.run(tf.global_variables_initializer())
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"reshape is a tensor with 3 values(?s:.)*square"
    ):
        session.run(rows, {ids: np.arange(3)})


def test_fetches_of_a_segment_before_updates_of_rows_make_no_segment_of_their_own(session):
    ids = tf.placeholder(tf.int32, [3])
    loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table(), ids)))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    program = session._prepare([train, loss], {ids: None}).program
    assert sum(part.kind == "segment" and len(part.ops) > 1 for part in program.plan.parts) == 1
    losses = [session.run([train, loss], {ids: [5, 7, 5]})[1] for _ in range(3)]
    assert losses[0] > losses[1] > losses[2]


def test_sums_over_equal_indices_stay_with_the_update_they_are_for(session):
    ids = tf.placeholder(tf.int32, [4])
    rows = tf.nn.embedding_lookup(table(), ids)
    train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.square(rows), name="loss"))
    session.run(tf.global_variables_initializer())
    result = kinds(session, train, ids)
    sums = [kind for name, kind in result.items() if "UnsortedSegmentSum" in name]
    assert sums == ["index"]
    assert "segment" in result.values()  # the rest of the step is compiled: its shapes stay the same
    before = session.run(rows, {ids: [1, 2, 1, 7]})
    session.run(train, {ids: [1, 2, 1, 1]})
    after = session.run(rows, {ids: [1, 2, 1, 7]})
    assert np.all(before[3] == after[3])
    assert np.all(np.abs(after[:2]) < np.abs(before[:2]))


def test_accidental_hits_of_a_batch_of_any_size_stay_outside_of_the_segment(session):
    words, near = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None, 1])
    biases = tf.get_variable("biases", [50_000])
    inputs = tf.nn.embedding_lookup(table(), words)
    losses = tf.nn.sampled_softmax_loss(table("out"), biases, near, inputs, 8, 50_000)
    session.run(tf.global_variables_initializer())
    result = kinds(session, losses, words, near)
    assert [kind for name, kind in result.items() if "SparseToDense" in name] == ["index"]
    for size in (3, 5):
        fed = {words: np.arange(size), near: np.arange(size)[:, None]}
        assert session.run(losses, fed).shape == (size,)


@pytest.mark.parametrize(
    "sliced",
    [
        lambda x: x[1],
        lambda x: x[-1],
        lambda x: x[:, 0],
        lambda x: x[::-1, 1],
        lambda x: x[1:, tf.newaxis, 0],
        lambda x: x[..., 1],
        lambda x: tf.cast(x[:2, 1], tf.int32),
        lambda x: tf.shape(x, out_type=tf.int64)[:1],
    ],
)
def test_slices_of_indices_are_what_they_are_elsewhere(session, sliced):
    x = tf.placeholder(tf.int64, [None, None])
    rows = tf.gather(table(), sliced(x))
    session.run(tf.global_variables_initializer())
    given = np.array([[4, 3], [2, 1], [0, 9]])
    whole, places = session.run([table_of(rows), sliced(tf.constant(given))])
    np.testing.assert_array_equal(session.run(rows, {x: given}), whole[places])


def table_of(rows):
    """The variable that rows are gathered from."""
    return rows.graph.get_tensor_by_name("table:0")


def test_an_index_outside_of_a_slice_is_told_as_elsewhere(session):
    x = tf.placeholder(tf.int64, [None])
    rows = tf.gather(table(), x[3])
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match="slice index 3 of dimension 0 out of bounds"):
        session.run(rows, {x: [1, 2]})


def test_numbers_that_are_gathered_by_place_stay_with_the_host_operations_they_serve(session):
    x = tf.placeholder(tf.int64, [None, 1])
    values = tf.gather_nd(x, tf.where(tf.not_equal(x, -1)), name="values")
    unique, doubled = tf.unique(values)[0], tf.multiply(values, 2, name="doubled")
    assert kinds(session, unique, x)["values"] == "index"
    assert kinds(session, doubled, x)["values"] == "segment"  # nothing on the host needs them
    fed = {x: [[3], [-1], [3], [4]]}
    assert session.run(unique, fed).tolist() == [3, 4]
    assert session.run(doubled, fed).tolist() == [6, 6, 8]


def test_a_place_outside_of_what_numbers_are_gathered_from_is_told_as_elsewhere(session):
    x, places = tf.placeholder(tf.int64, [3]), tf.placeholder(tf.int32, [None, 1])
    unique = tf.unique(tf.gather_nd(x, places, name="values"))[0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"index(?s:.)*values"):
        session.run(unique, {x: [1, 2, 3], places: [[7]]})
