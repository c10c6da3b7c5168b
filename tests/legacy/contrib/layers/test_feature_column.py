"""Feature columns of `tf.contrib.layers`: what models make of them."""

import numpy as np
import pytest

import tensorfleet as tf

layers = tf.contrib.layers
WORDS = tf.SparseTensorValue([[0, 0], [1, 0], [1, 1]], [b"a", b"b", b"a"], [2, 2])


def run(fetches):
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return sess.run(fetches)


def words():
    return tf.SparseTensor(*WORDS)


def test_integers_are_taken_modulo_the_number_of_ids():
    column = layers.sparse_column_with_integerized_feature("n", 3)
    result = layers.input_from_feature_columns(
        {"n": tf.constant([[4], [2]])}, [layers.one_hot_column(column)]
    )
    np.testing.assert_array_equal(run(result), [[0, 1, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="dtype must be an integer"):
        layers.sparse_column_with_integerized_feature("n", 3, dtype=tf.string)


def test_a_joint_sum_has_one_variable_for_all_columns():
    first = layers.sparse_column_with_keys("w", ["a", "b"])
    second = layers.sparse_column_with_integerized_feature("n", 3)
    features = {"w": words(), "n": tf.constant([[0], [2]])}
    total, variables, bias = layers.joint_weighted_sum_from_feature_columns(features, [first, second], 1)
    (table,) = variables
    assert table.op.name == "joint_weighted_sum_from_feature_columns/weights"
    assert table.shape == [5, 1]
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        sess.run([table.assign([[1.0], [2.0], [4.0], [8.0], [16.0]]), bias.assign([100.0])])
        # "n" comes before "w": its three ids are the first rows.
        np.testing.assert_array_equal(sess.run(total), [[109.0], [128.0]])
    with pytest.raises(ValueError, match="Real-valued columns are not supported"):
        layers.joint_weighted_sum_from_feature_columns({"x": [1.0]}, [layers.real_valued_column("x")], 1)


def test_features_are_transformed_by_their_columns():
    keys = layers.sparse_column_with_keys("w", ["a", "b"])
    buckets = layers.bucketized_column(layers.real_valued_column("x"), [1.0, 5.0])
    result = layers.transform_features({"w": words(), "x": tf.constant([[0.0], [9.0]])}, [keys, buckets])
    assert set(result) == {keys, buckets}
    ids, places = run([result[keys], result[buckets]])
    np.testing.assert_array_equal(ids.values, [0, 1, 0])
    np.testing.assert_array_equal(places, [[0], [2]])


def test_columns_read_their_features_from_examples():
    example = tf.train.Example()
    example.features.feature["w"].bytes_list.value.extend([b"b"])
    example.features.feature["x"].float_list.value.extend([1.5, 2.5])
    columns = [layers.sparse_column_with_keys("w", ["a", "b"]), layers.real_valued_column("x", 2)]
    result = layers.parse_feature_columns_from_examples([example.SerializeToString()], columns)
    ids, numbers, raw = run([result[columns[0]], result[columns[1]], result["x"]])
    assert ids.values.tolist() == [1]
    np.testing.assert_array_equal(numbers, [[1.5, 2.5]])
    np.testing.assert_array_equal(raw, numbers)


def test_columns_read_their_features_from_sequences_of_examples():
    example = tf.train.SequenceExample()
    example.context.feature["x"].float_list.value.extend([3.0])
    steps = example.feature_lists.feature_list["s"]
    for value in (1.0, 2.0):
        steps.feature.add().float_list.value.extend([value])
    context, sequence = layers.parse_feature_columns_from_sequence_examples(
        example.SerializeToString(), [layers.real_valued_column("x")], [layers.real_valued_column("s")]
    )
    first, second = run([context["x"], sequence["s"]])
    np.testing.assert_array_equal(first, [3.0])
    np.testing.assert_array_equal(second, [[1.0], [2.0]])


def test_sequences_are_put_together_step_by_step():
    ids = tf.SparseTensor([[0, 0, 0], [0, 1, 0], [1, 0, 0]], [1, 0, 1], [2, 2, 1])
    numbers = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    columns = [
        layers.real_valued_column("x", 2, normalizer=lambda x: x * 10),
        layers.embedding_column(
            layers.sparse_column_with_integerized_feature("n", 2), 3, initializer=tf.constant_initializer(0.5)
        ),
    ]
    result = run(layers.sequence_input_from_feature_columns({"x": tf.constant(numbers), "n": ids}, columns))
    assert result.shape == (2, 2, 5)
    np.testing.assert_allclose(result[:, :, 3:], numbers * 10)
    np.testing.assert_allclose(result[:, :, :3], np.array([[[0.5], [0.5]], [[0.5], [0]]]) * np.ones(3))


def test_columns_are_inferred_from_tensors_of_numbers():
    (column,) = layers.infer_real_valued_columns(tf.zeros([5, 2, 3]))
    assert column.name == "" and column.shape == (6,)
    result = layers.infer_real_valued_columns({"a": tf.zeros([5]), "b": tf.zeros([5, 4], tf.int64)})
    assert [(c.name, c.shape, c.dtype) for c in result] == [("a", (1,), tf.float32), ("b", (4,), tf.int64)]
    with pytest.raises(ValueError, match="not supported for auto detection"):
        layers.infer_real_valued_columns(tf.constant(["x"]))


def test_placeholders_for_the_features_of_columns():
    columns = [layers.sparse_column_with_hash_bucket("w", 10), layers.real_valued_column("x", 3)]
    result = layers.make_place_holder_tensors_for_base_features(columns)
    assert isinstance(result["w"], tf.SparseTensor) and result["w"].dtype == tf.string
    assert result["x"].shape.as_list() == [None, 3]


def test_words_are_found_in_a_file(tmp_path):
    (tmp_path / "words").write_text("b\na\n")
    column = layers.sparse_column_with_vocabulary_file("w", str(tmp_path / "words"), vocab_size=2)
    result = layers.transform_features({"w": words()}, [column])[column]
    np.testing.assert_array_equal(run(result).values, [1, 0, 1])
    with pytest.raises(ValueError, match="vocab_size should be defined"):
        layers.sparse_column_with_vocabulary_file("w", "words")


def test_columns_share_a_table():
    columns = [layers.sparse_column_with_keys(k, ["a", "b"]) for k in ("p", "q")]
    shared = layers.shared_embedding_columns(columns, 2, shared_embedding_name="both")
    result = layers.input_from_feature_columns({"p": words(), "q": words()}, shared)
    assert len(tf.trainable_variables()) == 1
    value = run(result)
    np.testing.assert_array_equal(value[:, :2], value[:, 2:])


def test_two_columns_of_one_name_are_refused():
    column = layers.real_valued_column("x")
    with pytest.raises(ValueError, match="Duplicate feature column"):
        layers.check_feature_columns([column, column])
    with pytest.raises(ValueError, match="found dict"):
        layers.check_feature_columns({"x": column})


def census(n):
    random = np.random.RandomState(0)
    age = random.randint(18, 70, n).astype(np.float32)
    job = random.choice(["clerk", "cook", "smith"], n)
    rich = ((age > 40) & (job != "cook")).astype(np.int64)
    return age, job, rich


def census_input():
    age, job, rich = census(200)
    places = [[i, 0] for i in range(200)]
    features = {"age": tf.constant(age), "job": tf.SparseTensor(places, tf.constant(job), [200, 1])}
    return features, tf.constant(rich)


def test_a_wide_and_deep_model_learns_from_these_columns(tmp_path):
    job = layers.sparse_column_with_hash_bucket("job", 50)
    age = layers.real_valued_column("age", normalizer=lambda x: x / 70)
    buckets = layers.bucketized_column(age, [0.4, 0.5, 40.5 / 70, 0.8])
    wide = [job, buckets, layers.crossed_column([job, buckets], hash_bucket_size=200)]
    deep = [layers.embedding_column(job, dimension=4), age]
    model = tf.contrib.learn.DNNLinearCombinedClassifier(
        model_dir=str(tmp_path),
        linear_feature_columns=wide,
        dnn_feature_columns=deep,
        dnn_hidden_units=[8, 4],
        config=tf.contrib.learn.RunConfig(tf_random_seed=1),
    )
    model.fit(input_fn=census_input, steps=300)
    assert model.evaluate(input_fn=census_input, steps=1)["accuracy"] > 0.95


def test_variables_have_the_names_of_old_checkpoints():
    with tf.Graph().as_default():
        price = layers.real_valued_column("price")
        word = layers.sparse_column_with_hash_bucket("word", 5)
        features = {"price": tf.ones([2, 1]), "word": tf.SparseTensor([[0, 0], [1, 0]], ["a", "b"], [2, 1])}
        layers.weighted_sum_from_feature_columns(features, [price, word], 1, scope="linear")
        layers.input_from_feature_columns(features, [price, layers.embedding_column(word, 3)])
        assert {v.op.name: v.shape.as_list() for v in tf.model_variables()} == {
            "linear/price/weight": [1, 1],
            "linear/word/weights": [5, 1],
            "linear/bias_weight": [1],
            "input_from_feature_columns/word_embedding/weights": [5, 3],
        }


def test_inputs_are_joined_in_the_order_of_tensorflows_descriptions():
    price, age = layers.real_valued_column("price"), layers.real_valued_column("age")
    bucket = layers.bucketized_column(price, [0.5])
    word = layers.sparse_column_with_keys("word", ["x", "y"])
    features = {
        "price": tf.constant([[0.25]]),
        "age": tf.constant([[7.0]]),
        "word": tf.SparseTensor([[0, 0]], ["y"], [1, 1]),
    }
    result = layers.input_from_feature_columns(features, [price, age, layers.one_hot_column(word), bucket])
    assert run(result).tolist() == [[1, 0, 0, 1, 7, 0.25]]


@pytest.mark.parametrize(("combiner", "wanted"), [("sum", 6.0), ("mean", 3.0), ("sqrtn", 6 / 2**0.5)])
def test_a_sparse_column_says_how_its_weights_are_combined(combiner, wanted):
    with tf.Graph().as_default(), tf.Session() as session:
        column = layers.sparse_column_with_integerized_feature("id", 4, combiner=combiner)
        features = {"id": tf.SparseTensor([[0, 0], [0, 1]], np.array([1, 3], np.int64), [1, 2])}
        total, variables, _ = layers.weighted_sum_from_feature_columns(features, [column], 1)
        session.run(tf.global_variables_initializer())
        session.run(tf.assign(variables[column][0], [[1.0], [2.0], [3.0], [4.0]]))
        np.testing.assert_allclose(session.run(total), [[wanted]], rtol=1e-6)


def test_columns_are_of_the_classes_that_scripts_ask_for():
    inside = layers.python.layers.feature_column
    price = layers.real_valued_column("price")
    word = layers.sparse_column_with_hash_bucket("word", 5)
    for column, name in (
        (price, "_RealValuedColumn"),
        (layers.bucketized_column(price, [1.0]), "_BucketizedColumn"),
        (word, "_SparseColumn"),
        (word, "_SparseColumnHashed"),
        (layers.embedding_column(word, 2), "_EmbeddingColumn"),
        (layers.one_hot_column(word), "_OneHotColumn"),
        (layers.crossed_column([word, word], 10), "_CrossedColumn"),
        (layers.weighted_sparse_column(word, "w"), "_WeightedSparseColumn"),
        (layers.sparse_column_with_keys("k", ["a"]), "_SparseColumnKeys"),
    ):
        assert isinstance(column, getattr(inside, name)) and isinstance(column, inside._FeatureColumn)
    assert not isinstance(price, inside._SparseColumn)
