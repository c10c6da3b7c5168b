import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base.naming import find
from tensorfleet_legacy.internals.data import sparse as data_util
from tests.support.sessions import elements


@pytest.fixture
def sess():
    with tf.Session() as sess:
        yield sess


def test_arguments_become_tensors(sess):
    assert sess.run(data_util.optional_param_to_tensor("count", None, 7)) == 7
    assert sess.run(data_util.partial_shape_to_tensor([1, None])).tolist() == [1, -1]
    assert sess.run(data_util.partial_shape_to_tensor(tf.constant([1, 2], tf.int64))).tolist() == [1, 2]
    with pytest.raises(ValueError, match="must be a 1-D tensor of tf.int64 values, but the shape was"):
        data_util.partial_shape_to_tensor(tf.constant([[1]], tf.int64))
    with pytest.raises(TypeError, match="but the element type was int32"):
        data_util.partial_shape_to_tensor(tf.constant([1]))


def test_sparse_components_are_carried_by_variants():
    classes = {"a": tf.Tensor, "b": (tf.SparseTensor,)}
    assert data_util.any_sparse(classes) and not data_util.any_sparse(tf.Tensor)
    assert data_util.as_dense_types({"a": tf.int32, "b": (tf.int32,)}, classes)["b"] == (tf.variant,)
    shapes = data_util.as_dense_shapes({"a": tf.TensorShape([2]), "b": (tf.TensorShape([2]),)}, classes)
    assert shapes["a"] == [2] and shapes["b"][0].rank is None


def test_options_take_what_they_declare():
    class Own(data_util.OptionsBase):
        x = data_util.create_option("x", int, "A number.", default_factory=lambda: 42)
        y = data_util.create_option("y", float, "Another.")

    one, two = Own(), Own()
    two.y = 1.5
    assert (one.x, one.y) == (42, None) and one != two
    assert data_util.merge_options(one, two).y == 1.5
    with pytest.raises(TypeError, match='Property "x" must be of type'):
        one.x = "text"
    with pytest.raises(AttributeError, match="Cannot set the property z on Own"):
        one.z = 3
    one.y = 2.5
    with pytest.raises(ValueError, match="Cannot merge incompatible values"):
        data_util.merge_options(one, two)


def test_records_are_read_in_batches(tmp_path, sess):
    for i in range(2):
        with tf.io.TFRecordWriter(str(tmp_path / f"{i}.r")) as writer:
            for r in range(3):
                writer.write(b"%d%d" % (i, r))
    make = find("python.data.experimental.ops.readers.make_tf_record_dataset")
    dataset = make(
        str(tmp_path / "*.r"),
        4,
        parser_fn=lambda r: r + "!",
        num_epochs=1,
        shuffle=False,
        num_parallel_reads=1,
    )
    following = dataset.make_one_shot_iterator().get_next()
    assert sess.run(following).tolist() == [b"00!", b"01!", b"02!", b"10!"]
    assert sess.run(following).tolist() == [b"11!", b"12!"]


def test_names_of_version_two_are_those_of_version_one():
    assert find("python.data.ops.readers.TFRecordDatasetV2") is tf.data.TFRecordDataset
    assert find("python.data.ops.dataset_ops.AUTOTUNE") == tf.data.experimental.AUTOTUNE
    assert find("python.data.util.nest.flatten_up_to")((1, 2), ([1], [2])) == [[1], [2]]


def test_a_dataset_tells_what_it_is():
    assert repr(tf.data.Dataset.range(1)) == "<DatasetV1Adapter shapes: (), types: tf.int64>"


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: tf.data.Dataset.range(1).map(lambda x: object()), r"passed to Dataset.map\(\)"),
        (
            lambda: tf.data.Dataset.range(1).apply(tf.data.experimental.scan(np.int64(0), lambda s, x: x)),
            "must return a pair",
        ),
        (
            lambda: tf.data.experimental.sample_from_datasets(
                [tf.data.Dataset.range(1), tf.data.Dataset.from_tensors("x")]
            ),
            "All datasets must have the same type and class",
        ),
        (lambda: tf.data.experimental.TFRecordWriter("f").write("x"), "must be a `tf.data.Dataset` object"),
        (lambda: setattr(tf.data.Options(), "experimental_slack", "x"), "must be of type <class 'bool'>"),
    ],
)
def test_what_does_not_fit_is_refused_with_tensorflows_words(build, text):
    with pytest.raises(TypeError, match=text):
        build()


def test_sparse_components_are_carried_and_found_again(sess):
    sparse = tf.SparseTensor([[0, 1]], [5], [2, 3])
    element = (tf.constant(1), {"s": sparse})
    types, shapes = (tf.int32, {"s": tf.int32}), (tf.TensorShape([]), {"s": tf.TensorShape([2, 3])})
    carried = data_util.serialize_sparse_tensors(element)
    assert carried[1]["s"].dtype == tf.variant
    again = data_util.deserialize_sparse_tensors(carried, types, shapes, data_util.get_classes(element))
    result = sess.run(again)
    assert result[0] == 1 and result[1]["s"].values.tolist() == [5]
    assert result[1]["s"].indices.tolist() == [[0, 1]] and again[1]["s"].shape.rank == 2


def test_the_operations_of_a_dataset_are_found():
    dataset = tf.data.Dataset.zip((tf.data.Dataset.range(3), tf.data.Dataset.range(3).batch(2))).repeat()
    items = [op.type for op in data_util.obtain_all_variant_tensor_ops(dataset)]
    assert items[:2] == ["RepeatDataset", "ZipDataset"]
    assert sorted(items[2:]) == ["BatchDatasetV2", "RangeDataset", "RangeDataset"]


def test_files_that_match_patterns_are_a_dataset(tmp_path):
    for name in ("b.py", "a.py", "c.txt"):
        (tmp_path / name).touch()
    kind = find("python.data.experimental.ops.matching_files.MatchingFilesDataset")
    names = [str(tmp_path / n).encode() for n in ("a.py", "b.py", "c.txt")]
    assert elements(kind([str(tmp_path / "*.py"), str(tmp_path / "c*")])) == names
    with pytest.raises(tf.errors.NotFoundError, match="No files matched pattern"):
        elements(kind(str(tmp_path / "missing" / "*")))
