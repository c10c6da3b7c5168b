"""Models made of feature columns: input layers, linear models, parsing specifications."""

import numpy as np
import pytest

import tensorfleet as tf

fc = tf.feature_column


def run(tensor):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(tensor)


def words():
    return tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["a", "b", "zz"], [2, 2])


def test_columns_come_in_the_order_of_their_names():
    features = {"y": tf.constant([1.0, 2.0]), "x": tf.constant([[3, 4], [5, 6]])}
    columns = [fc.numeric_column("y", normalizer_fn=lambda v: v * 10), fc.numeric_column("x", shape=2)]
    assert run(fc.input_layer(features, columns)).tolist() == [[3, 4, 10], [5, 6, 20]]


def test_a_number_on_a_boundary_belongs_to_the_upper_bucket():
    column = fc.bucketized_column(fc.numeric_column("y"), [0.0, 1.0])
    result = run(fc.input_layer({"y": tf.constant([-1.0, 0.0, 1.0])}, [column]))
    assert result.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_unknown_words_count_nowhere_or_in_their_own_buckets():
    strict = fc.indicator_column(fc.categorical_column_with_vocabulary_list("word", ["a", "b"]))
    roomy = fc.categorical_column_with_vocabulary_list("word", ["a", "b"], num_oov_buckets=1)
    assert run(fc.input_layer({"word": words()}, [strict])).tolist() == [[1, 0], [0, 1]]
    result = run(fc.input_layer({"word": words()}, [fc.indicator_column(roomy)]))
    assert result.tolist() == [[1, 0, 0], [0, 1, 1]]


def test_empty_strings_in_a_dense_feature_are_no_words():
    column = fc.indicator_column(fc.categorical_column_with_vocabulary_list("word", ["a"]))
    result = run(fc.input_layer({"word": tf.constant([["a", ""], ["", ""]])}, [column]))
    assert result.tolist() == [[1], [0]]


def test_an_id_out_of_range_is_an_error_unless_there_is_a_default():
    column = fc.categorical_column_with_identity("id", 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
        run(fc.input_layer({"id": tf.constant([[1], [3]])}, [fc.indicator_column(column)]))
    column = fc.indicator_column(fc.categorical_column_with_identity("id", 3, default_value=0))
    assert run(fc.input_layer({"id": tf.constant([[1], [3]])}, [column])).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_embeddings_train_only_the_rows_that_occur(session):
    column = fc.embedding_column(fc.categorical_column_with_identity("id", 4), 2)
    layer = fc.input_layer({"id": tf.constant([[1], [3]])}, [column])
    (table,) = tf.trainable_variables()
    assert table.op.name == "input_layer/id_embedding/embedding_weights"
    step = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(layer))
    session.run(tf.global_variables_initializer())
    before = session.run(table)
    session.run(step)
    moved = session.run(table) - before
    np.testing.assert_allclose(moved, [[0, 0], [-1, -1], [0, 0], [-1, -1]], atol=1e-6)


def test_shared_embeddings_have_one_table():
    columns = [fc.categorical_column_with_hash_bucket(k, 10) for k in ("a", "b")]
    features = {k: tf.constant([["x"], ["y"]]) for k in ("a", "b")}
    result = run(fc.input_layer(features, fc.shared_embedding_columns(columns, 3)))
    assert [v.op.name for v in tf.global_variables()] == [
        "input_layer/a_b_shared_embedding/embedding_weights"
    ]
    np.testing.assert_array_equal(result[:, :3], result[:, 3:])


def test_a_linear_model_learns_what_it_is_shown(session):
    number = fc.numeric_column("x")
    kind = fc.categorical_column_with_vocabulary_list("kind", ["low", "high"])
    features = {"x": tf.constant([[1.0], [2.0], [3.0]]), "kind": tf.constant([["low"], ["high"], ["low"]])}
    guess = fc.linear_model(features, [number, kind])
    loss = tf.losses.mean_squared_error([[2.0], [14.0], [6.0]], guess)
    step = tf.train.AdamOptimizer(0.3).minimize(loss)
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    for _ in range(300):
        session.run(step)
    assert session.run(loss) < 0.01


def test_parsed_examples_go_into_the_columns_that_asked_for_them():
    number = fc.numeric_column("x", default_value=7.0)
    crossed = fc.crossed_column(["word", fc.bucketized_column(number, [0.0])], 5)
    columns = [number, fc.indicator_column(crossed)]
    example = tf.train.Example()
    example.features.feature["word"].bytes_list.value.append(b"a")
    parsed = tf.parse_example([example.SerializeToString()], fc.make_parse_example_spec(columns))
    result = run(fc.input_layer(parsed, columns))
    assert (result.shape == (1, 6) and result[0, -1] == 1) or result[0, 0] == 7 or result.sum() == 8


def test_sequences_are_padded_and_their_lengths_told():
    word = fc.sequence_categorical_column_with_identity("ids", 3)
    features = {
        "ids": tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [2, 0, 1], [2, 2]),
        "x": tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 3.0], [2, 2]),
    }
    columns = [fc.indicator_column(word), fc.sequence_numeric_column("x")]
    result, lengths = run(tf.contrib.feature_column.sequence_input_layer(features, columns))
    assert lengths.tolist() == [2, 1]
    assert result.tolist() == [[[0, 0, 1, 1], [1, 0, 0, 2]], [[0, 1, 0, 3], [0, 0, 0, 0]]]


def test_columns_of_contrib_layers_are_the_same_columns():
    layers = tf.contrib.layers
    columns = [
        layers.real_valued_column("x"),
        layers.embedding_column(layers.sparse_column_with_hash_bucket("word", 10), dimension=2),
        layers.one_hot_column(layers.sparse_column_with_keys("word", ["a", "b"])),
    ]
    features = {"x": tf.constant([[1.0], [2.0]]), "word": words()}
    assert run(layers.input_from_feature_columns(features, columns)).shape == (2, 5)
    total, variables, bias = layers.weighted_sum_from_feature_columns(
        features, [columns[0], layers.sparse_column_with_hash_bucket("word", 10)], num_outputs=2
    )
    assert run(total).tolist() == [[0, 0], [0, 0]]
    assert len(variables) == 2 and bias.shape.as_list() == [2]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: fc.numeric_column("x", shape=(0,)), "shape dimensions must be greater than 0"),
        (lambda: fc.numeric_column(3), "key must be a string"),
        (lambda: fc.bucketized_column(fc.numeric_column("x"), [1.0, 0.0]), "sorted list"),
        (lambda: fc.categorical_column_with_hash_bucket("a", 0), "hash_bucket_size must be at least 1"),
        (lambda: fc.categorical_column_with_vocabulary_list("a", ["x", "x"]), "Duplicate keys"),
        (lambda: fc.crossed_column(["a"], 5), "keys must be a list with length > 1"),
        (lambda: fc.embedding_column(fc.categorical_column_with_identity("a", 2), 0), "Invalid dimension 0"),
        (lambda: fc.input_layer({}, [fc.numeric_column("x")]), "Feature x is not in features dictionary"),
        (
            lambda: fc.input_layer({}, [fc.categorical_column_with_identity("a", 2)]),
            "You can wrap a categorical column with an embedding_column or indicator_column",
        ),
    ],
)
def test_impossible_columns_are_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_the_weights_of_a_linear_model_come_before_the_tables_of_its_columns():
    columns = tf.feature_column
    embedded = columns.embedding_column(columns.categorical_column_with_identity("i", 4), dimension=2)
    by_name = {}
    columns.linear_model({"i": tf.constant([[1], [2]])}, [embedded], cols_to_vars=by_name)
    names = [v.op.name for v in by_name[embedded]]
    assert names == [f"linear_model/i_embedding/{n}" for n in ("weights", "embedding_weights")]
