"""The inside of datasets, queues and feature columns, and the test case for datasets."""

import pytest
from tensorfleet.python.data.kernel_tests import test_base
from tensorfleet.python.data.ops import dataset_ops
from tensorfleet.python.feature_column import feature_column, feature_column_v2
from tensorfleet.python.ops import data_flow_ops

import tensorfleet as tf


class Case(test_base.DatasetTestBase):
    def runTest(self):
        numbers = tf.data.Dataset.range(3)
        self.assertDatasetProduces(numbers, [0, 1, 2])
        self.assertDatasetProduces(numbers, [2, 0, 1], assert_items_equal=True, num_test_iterations=2)
        self.assertDatasetProduces(
            tf.data.Dataset.zip((numbers, {"a": numbers})), [(i, {"a": i}) for i in range(3)]
        )
        self.assertDatasetsEqual(
            numbers, tf.data.Dataset.from_tensor_slices(tf.constant([0, 1, 2], tf.int64))
        )
        failing = numbers.map(lambda x: tf.check_numerics(tf.cast(x, tf.float32) / 0.0, "bad"))
        self.assertDatasetProduces(failing, expected_error=(tf.errors.InvalidArgumentError, "bad"))
        with self.assertRaises(AssertionError):
            self.assertDatasetProduces(numbers, [0, 1])
        get_next = self.getNext(numbers, requires_initialization=True)
        self.assertEqual(self.evaluate(get_next()), 0)
        self.assertEqual(len(self.getDatasetOutput(numbers)), 3)
        pair = self.structuredDataset((None, None), [2])
        self.assertDatasetProduces(pair, [self.structuredElement((None, None), [2])])


def test_the_test_case_for_datasets():
    Case().debug()


def test_structure_of_elements():
    numbers = tf.data.Dataset.range(3)
    assert dataset_ops.get_legacy_output_types(numbers) == tf.int64
    assert dataset_ops.get_legacy_output_shapes(numbers) == []
    assert dataset_ops.get_legacy_output_classes(numbers) is tf.Tensor


def test_shapes_and_names_of_components():
    assert data_flow_ops._as_shape_list([(), (2,)], [tf.int32, tf.int32])[1].as_list() == [2]
    with pytest.raises(ValueError, match="must be fully defined"):
        data_flow_ops._as_shape_list([None, 2], [tf.int32])
    with pytest.raises(ValueError, match="the same length"):
        data_flow_ops._as_name_list(["a"], [tf.int32, tf.int32])


def test_classes_of_feature_columns():
    column = tf.feature_column.numeric_column("a")
    assert isinstance(column, feature_column._DenseColumn)
    assert isinstance(column, feature_column_v2.NumericColumn)
    assert feature_column._numeric_column is tf.feature_column.numeric_column
