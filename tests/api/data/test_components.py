"""Elements whose components are ragged tensors or optional elements, and what is known of such datasets."""

import numpy as np
import pytest
from tensorfleet.python.data.util import structure

import tensorfleet as tf


def elements(dataset):
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    result = []
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        while True:
            try:
                result.append(sess.run(element))
            except tf.errors.OutOfRangeError:
                return result


def rows(dataset):
    return [value.to_list() for value in elements(dataset)]


def counted(i):
    return tf.RaggedTensor.from_row_lengths(tf.range(2 * i), tf.stack([i, i]))


def test_a_ragged_tensor_is_one_element_or_one_per_row():
    ragged = tf.ragged.constant([[[1, 2], []], [[3]]])
    assert rows(tf.data.Dataset.from_tensors(ragged)) == [[[[1, 2], []], [[3]]]]
    assert rows(tf.data.Dataset.from_tensor_slices(ragged)) == [[[1, 2], []], [[3]]]
    once = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [3]]))
    assert [value.tolist() for value in elements(once)] == [[1, 2], [3]]
    assert once.output_classes is tf.Tensor


def test_ragged_tensors_that_a_function_makes_are_batched_and_cut_again():
    dataset = tf.data.Dataset.range(1, 4).map(counted)
    assert rows(dataset) == [[[0], [1]], [[0, 1], [2, 3]], [[0, 1, 2], [3, 4, 5]]]
    assert rows(dataset.batch(2)) == [[[[0], [1]], [[0, 1], [2, 3]]], [[[0, 1, 2], [3, 4, 5]]]]
    assert rows(dataset.batch(2).unbatch()) == rows(dataset)
    assert dataset.output_classes is tf.RaggedTensor
    assert dataset.element_spec == tf.RaggedTensorSpec([2, None], tf.int64, 1, tf.int64)
    assert dataset.batch(2).element_spec._ragged_rank == 2


def test_functions_take_ragged_tensors():
    dataset = tf.data.Dataset.range(1, 4).map(counted)
    assert elements(dataset.map(lambda r: tf.reduce_sum(r.flat_values))) == [1, 6, 15]
    assert rows(dataset.filter(lambda r: r.nrows() * r.row_lengths()[0] > 3)) == rows(dataset.skip(1))


def test_ragged_values_are_components_of_structures():
    value = tf.ragged.constant_value([[1], [2, 3]])
    (element,) = elements(tf.data.Dataset.from_tensors({"a": value, "b": 7}))
    assert element["a"].to_list() == [[1], [2, 3]]
    assert element["b"] == 7


def test_ragged_elements_are_kept_in_a_file(tmp_path):
    dataset = tf.data.Dataset.range(1, 3).map(counted).cache(str(tmp_path / "kept"))
    assert rows(dataset) == rows(dataset) == [[[0], [1]], [[0, 1], [2, 3]]]


def test_the_place_among_batches_of_ragged_tensors_is_saved(tmp_path):
    dataset = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[[1]], [[2, 3]], [[4], [5]]]))
    iterator = tf.data.make_initializable_iterator(dataset.batch(2).unbatch())
    element = iterator.get_next()
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        assert sess.run(element).to_list() == [[1]]
        path = saver.save(sess, str(tmp_path / "place"))
        sess.run(iterator.initializer)
        saver.restore(sess, path)
        assert sess.run(element).to_list() == [[2, 3]]
        assert sess.run(element).to_list() == [[4], [5]]


def test_optional_elements_are_components():
    optional = tf.data.experimental.Optional
    dataset = tf.data.Dataset.range(3).map(optional.from_value)
    assert dataset.output_classes is optional
    assert elements(dataset.map(lambda o: o.get_value() + 1)) == [1, 2, 3]
    assert elements(dataset.map(lambda o: o.has_value())) == [True] * 3
    with pytest.raises(TypeError, match="Optional cannot be batched"):
        dataset.batch(2)


def test_a_dataset_names_what_it_is_made_from():
    first, second = tf.data.Dataset.range(3), tf.data.Dataset.range(2)
    assert first.concatenate(second)._inputs() == [first, second]
    mapped = first.map(lambda x: x * 2)
    assert (mapped._inputs(), len(mapped._functions()), len(first._functions())) == ([first], 1, 0)
    with tf.Session() as sess:
        string = tf.GraphDef.FromString(sess.run(mapped._as_serialized_graph()))
    assert {"RangeDataset", "MapDataset"} <= {node.op for node in string.node}


def test_an_iterator_in_another_graph_than_its_dataset_is_told_of(caplog):
    dataset = tf.data.Dataset.range(3).map(lambda x: x)
    with tf.Graph().as_default():
        dataset.make_one_shot_iterator()
    assert "created in the same graph as the iterator" in caplog.text


def test_an_iterator_has_one_handle_unless_it_is_named():
    iterator = tf.data.Dataset.range(3).make_one_shot_iterator()
    assert iterator.string_handle() is iterator.string_handle()
    assert iterator.string_handle("mine").op.name == "mine"


def test_elements_are_carried_by_tensors_and_found_again():
    value = {"a": tf.constant([1.0, 2.0]), "b": tf.ragged.constant([[1], [2, 3]])}
    spec = structure.type_spec_from_value(value)
    assert structure.are_compatible(spec, {"a": tf.TensorSpec([None], tf.float32), "b": spec["b"]})
    assert not structure.are_compatible(spec, {"a": spec["a"]})
    assert structure.get_flat_tensor_types(spec) == [tf.float32, tf.variant]
    assert structure.get_flat_tensor_shapes(spec)[0].as_list() == [2]
    tensors = structure.to_tensor_list(spec, value)
    again = structure.from_tensor_list(spec, tensors)
    with tf.Session() as sess:
        result = sess.run(again)
    np.testing.assert_array_equal(result["a"], [1.0, 2.0])
    assert result["b"].to_list() == [[1], [2, 3]]
    with pytest.raises(ValueError, match="not compatible"):
        structure.to_tensor_list(spec["a"], tf.constant(1))
    with pytest.raises(ValueError, match="flat values"):
        structure.from_tensor_list(spec, tensors[:1])


def test_a_spec_finds_its_dataset_in_a_tensor():
    dataset = tf.data.Dataset.range(3)
    spec = structure.type_spec_from_value(dataset)
    assert structure.get_flat_tensor_shapes(spec) == [tf.TensorShape([])]
    assert elements(spec._from_tensor_list(spec._to_tensor_list(dataset))) == [0, 1, 2]


def test_a_function_that_makes_a_table_is_warned_of():
    def look_up(x):
        tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1.0]), 0.0)
        return x

    with pytest.warns(UserWarning, match="Creating resources inside a function passed to Dataset.map"):
        tf.data.Dataset.range(3).map(look_up)


def test_a_function_that_draws_by_the_graphs_seed_is_warned_of():
    tf.set_random_seed(7)
    with pytest.warns(UserWarning, match="Seed 7 from outer graph might be getting used"):
        tf.data.Dataset.range(3).map(lambda x: tf.random_uniform([]))
    tf.data.Dataset.range(3).map(lambda x: tf.random_uniform([], seed=3))


def test_a_function_finds_what_is_in_the_collections_around_it():
    tf.add_to_collection("mine", 7)

    def function(x):
        assert tf.get_collection("mine") == [7]
        tf.add_to_collection("mine", 8)
        return x

    tf.data.Dataset.range(1).map(function)
    assert tf.get_collection("mine") == [7]
