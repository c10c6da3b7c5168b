"""Columns by the names that TensorFlow asks them by, and columns of a user's own."""

import collections

import pytest

import tensorfleet as tf

fc = tf.python.feature_column.feature_column
later = tf.python.feature_column.feature_column_v2


class Doubled(fc._DenseColumn):
    """Twice a feature."""

    times = 0
    name = "doubled"
    _variable_shape = tf.TensorShape([1])
    _parse_example_spec = {"a": tf.FixedLenFeature([1], tf.float32)}

    def _transform_feature(self, inputs):
        type(self).times += 1
        return inputs.get("a") * 2.0

    def _get_dense_tensor(self, inputs, weight_collections=None, trainable=None):
        return inputs.get(self)


class Fixed(fc._CategoricalColumn):
    """The same ids for all."""

    name = "fixed"
    _num_buckets = 3

    def _get_sparse_tensors(self, inputs, weight_collections=None, trainable=None):
        ids = tf.SparseTensor([[0, 0], [1, 0]], [2, 0], [2, 1])
        return fc._CategoricalColumn.IdWeightPair(ids, None)


def test_a_column_of_ones_own_is_asked_by_the_old_names(session):
    column = Doubled()
    layer = tf.feature_column.input_layer({"a": [[1.0], [2.0]]}, [column])
    assert session.run(layer).tolist() == [[2.0], [4.0]]
    assert tf.feature_column.make_parse_example_spec([column]) == Doubled._parse_example_spec
    builder = fc._LazyBuilder({"a": [[1.0]]})
    before = Doubled.times
    assert builder.get(column) is builder.get(column) and Doubled.times == before + 1


def test_a_categorical_column_of_ones_own_has_weights(session):
    result = tf.feature_column.linear_model({"a": [[1.0], [2.0]]}, [Fixed()])
    [weights] = tf.global_variables("linear_model/fixed")
    session.run(tf.global_variables_initializer())
    session.run(weights.assign([[10.0], [100.0], [1000.0]]))
    assert session.run(result).tolist() == [[1000.0], [10.0]]


def test_columns_answer_to_the_old_and_the_later_names(session):
    price = tf.feature_column.numeric_column("price", shape=[2])
    buckets = tf.feature_column.bucketized_column(price, [0.0, 2.0])
    features = {"price": [[-1.0, 1.0]]}
    assert (buckets._num_buckets, buckets._variable_shape, buckets.parents) == (6, [2, 3], [price])
    ids, weights = buckets._get_sparse_tensors(fc._LazyBuilder(features))
    assert session.run(ids).values.tolist() == [0, 4] and weights is None
    cache = later.FeatureTransformationCache(features)
    again = buckets.get_sparse_tensors(cache, None).id_tensor
    assert session.run(again).values.tolist() == [0, 4]
    transformed = fc._transform_features(features, [price, buckets])
    assert session.run(transformed[buckets]).tolist() == [[0, 1]]


def test_what_is_no_column_and_what_transforms_to_nothing_is_refused():
    class Nothing(fc._FeatureColumn):
        name = "nothing"

        def _transform_feature(self, inputs):
            return None

    builder = fc._LazyBuilder({"a": [[1.0]]})
    with pytest.raises(ValueError, match="Column nothing is not supported"):
        builder.get(Nothing())
    with pytest.raises(TypeError, match='"key" must be either a "str" or "_FeatureColumn"'):
        builder.get(object())
    with pytest.raises(TypeError, match='"key" must be either a "str" or "FeatureColumn"'):
        later.FeatureTransformationCache({}).get(object(), None)


def test_a_state_manager_makes_and_gives_the_variables_of_columns(session):
    class State(later.StateManager):
        held = {}

        def create_variable(
            self, feature_column, name, shape, dtype=None, trainable=True, use_resource=True, initializer=None
        ):
            self.held[name] = tf.get_variable(name, shape, dtype, tf.ones_initializer())

        def get_variable(self, feature_column, name):
            return self.held[name]

    ids = tf.feature_column.categorical_column_with_identity("id", 3)
    column, state = tf.feature_column.embedding_column(ids, 2), State()
    column.create_state(state)
    result = column.get_dense_tensor(later.FeatureTransformationCache({"id": [[0], [2]]}), state)
    session.run(tf.global_variables_initializer())
    assert session.run(result).tolist() == [[1.0, 1.0], [1.0, 1.0]] and len(tf.global_variables()) == 1


def test_the_number_of_examples_must_be_one():
    columns = [tf.feature_column.numeric_column(name) for name in ("a", "b")]
    for use in (tf.feature_column.input_layer, tf.feature_column.linear_model):
        with pytest.raises(
            ValueError, match=r"Batch size \(first dimension\) of each feature must be same.*\(2, 1\)"
        ):
            use({"a": [[1.0], [2.0]], "b": [[1.0]]}, columns)


def test_columns_of_sequences_and_others_are_told_apart():
    steps = tf.feature_column.sequence_categorical_column_with_identity("s", 3)
    once = tf.feature_column.categorical_column_with_identity("s", 3)
    features = {"s": tf.SparseTensor([[0, 0]], [1], [1, 1])}
    with pytest.raises(
        ValueError, match="s_embedding. categorical_column must not be of type SequenceCategorical"
    ):
        tf.feature_column.input_layer(features, [tf.feature_column.embedding_column(steps, 2)])
    with pytest.raises(
        ValueError, match="s_indicator. categorical_column must be of type SequenceCategoricalColumn"
    ):
        tf.contrib.feature_column.sequence_input_layer(features, [tf.feature_column.indicator_column(once)])
    with pytest.raises(ValueError, match="Items of feature_columns must be a SequenceDenseColumn"):
        tf.keras.experimental.SequenceFeatures([tf.feature_column.numeric_column("s")])
    with pytest.raises(ValueError, match="categorical_column_with_hash_bucket is not supported for crossing"):
        tf.feature_column.crossed_column(
            ["a", tf.feature_column.categorical_column_with_hash_bucket("b", 3)], 5
        )


def test_layers_keep_their_variables(session):
    ids = tf.feature_column.categorical_column_with_identity("id", 3)
    layer = fc.InputLayer([tf.feature_column.embedding_column(ids, 2)])
    first, second = layer({"id": [[0]]}), layer({"id": [[0]]})
    assert [v.name for v in layer.variables] == [
        "feature_column_input_layer/id_embedding/embedding_weights:0"
    ]
    model = fc._LinearModel([tf.feature_column.numeric_column("x")])
    model({"x": [[1.0]]})
    model({"x": [[2.0]]})
    assert {getattr(k, "name", k): [v.name for v in vs] for k, vs in model.cols_to_vars().items()} == {
        "x": ["linear_model/x/weights:0"],
        "bias": ["linear_model/bias_weights:0"],
    }
    session.run(tf.global_variables_initializer())
    assert session.run(first).tolist() == session.run(second).tolist()


def test_what_holds_for_a_whole_sequence_is_appended_to_its_steps(session):
    append = tf.python.feature_column.sequence_feature_column.concatenate_context_input
    both = append(tf.constant([[10.0]]), tf.constant([[[1.0], [2.0]]]))
    assert session.run(both).tolist() == [[[1.0, 10.0], [2.0, 10.0]]]
    with pytest.raises(ValueError, match="context_input must have rank 2"):
        append(tf.constant([[[10.0]]]), tf.constant([[[1.0]]]))


def test_a_column_may_be_of_the_old_and_the_new_kind_at_once():
    old, new = tf.python.feature_column.feature_column, tf.python.feature_column.feature_column_v2

    class Both(new.DenseColumn, old._DenseColumn, new.CategoricalColumn, old._CategoricalColumn):
        pass

    class Reversed(old._DenseColumn, new.DenseColumn, collections.namedtuple("Reversed", "key")):
        pass

    numeric = tf.feature_column.numeric_column("x")
    for kind in (old._DenseColumn, new.DenseColumn, old._FeatureColumn, new.FeatureColumn):
        assert isinstance(numeric, kind) and isinstance(Both(), kind) and isinstance(Reversed("x"), kind)
    assert not isinstance(numeric, Both) and not isinstance(numeric, old._CategoricalColumn)
    assert issubclass(Both, old._CategoricalColumn) and not issubclass(Reversed, new.CategoricalColumn)


def test_columns_are_sorted_by_what_they_say():
    a, b = tf.feature_column.numeric_column("a"), tf.feature_column.numeric_column("b")
    assert sorted(["z", b, a, "0"]) == ["0", a, b, "z"]


def test_an_indicator_has_one_row_and_an_embedding_transforms_to_its_ids():
    words = tf.feature_column.categorical_column_with_identity("x", 4)
    indicator, embedding = (
        tf.feature_column.indicator_column(words),
        tf.feature_column.embedding_column(words, 2),
    )
    assert indicator.variable_shape.as_list() == [1, 4]
    batch = tf.python.feature_column.feature_column._LazyBuilder({"x": [[1], [2]]})
    assert embedding._transform_feature(batch) is batch.get(words)


def test_the_table_of_an_embedding_is_a_global_variable_besides_what_is_asked_for():
    words = tf.feature_column.categorical_column_with_identity("x", 4)
    embedding = tf.feature_column.embedding_column(words, 2)
    batch = tf.python.feature_column.feature_column._LazyBuilder({"x": [[1], [2]]})
    embedding._get_dense_tensor(batch, weight_collections=("mine",))
    assert tf.global_variables() == tf.get_collection("mine") and len(tf.global_variables()) == 1


def test_weights_of_shared_embeddings_go_by_the_name_of_the_table():
    columns = [tf.feature_column.categorical_column_with_identity(k, 4) for k in ("a", "b")]
    shared = tf.feature_column.shared_embedding_columns(columns, 2)
    tf.feature_column.linear_model({"a": [[1]], "b": [[2]]}, shared)
    assert sorted(v.op.name for v in tf.global_variables()) == [
        "linear_model/a_b_shared_embedding/embedding_weights",
        "linear_model/a_b_shared_embedding/weights",
        "linear_model/a_b_shared_embedding_1/weights",
        "linear_model/bias_weights",
    ]


def test_features_of_a_rank_that_only_the_run_tells():
    numeric, ids = tf.placeholder(tf.float32), tf.sparse_placeholder(tf.int64)
    words = tf.feature_column.categorical_column_with_identity("ids", 3)
    columns = [tf.feature_column.numeric_column("n"), tf.feature_column.indicator_column(words)]
    output = tf.feature_column.input_layer({"n": numeric, "ids": ids}, columns)
    sparse = tf.SparseTensorValue([[0], [1]], [1, 2], [2])
    with tf.Session() as sess:
        result = sess.run(output, {numeric: [5.0, 6.0], ids: sparse})
        assert result.tolist() == [[0, 1, 0, 5], [0, 0, 1, 6]]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Feature \(key: n\) cannot have rank 0"):
            sess.run(output, {numeric: 5.0, ids: sparse})
