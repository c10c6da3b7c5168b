import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet_legacy.testing.dataset_serialization_test_base import DatasetSerializationTestBase


class Saved(DatasetSerializationTestBase):
    def runTest(self):
        pass


@pytest.fixture
def saved():
    case = Saved()
    case.setUp()
    yield case
    case.doCleanups()


def test_a_dataset_goes_on_after_every_break(saved):
    saved.run_core_tests(lambda: tf.data.Dataset.range(6).map(lambda x: (x, {"b": x * x})), 6)


def test_random_numbers_go_on_where_they_were(saved):
    saved.run_core_tests(lambda: tf.data.experimental.RandomDataset(seed=3).take(7), 7)


def test_what_is_sampled_goes_on_where_it_was(saved):
    parts = lambda: [tf.data.Dataset.range(5), tf.data.Dataset.range(10, 15)]  # noqa: E731
    saved.run_core_tests(lambda: tf.data.experimental.sample_from_datasets(parts(), [0.5, 0.5], seed=3), 10)


def test_sparse_slices_go_on_where_they_were(saved):
    def dataset():
        sparse = tf.SparseTensor(np.array([[0, 0], [2, 1]]), np.array([1.0, 2.0]), np.array([3, 2]))
        return tf.data.Dataset.from_sparse_tensor_slices(sparse)

    saved.run_core_tests(dataset, 3, sparse_tensors=True)


def test_a_difference_is_found(saved):
    saved.does_not_match([1, (np.array([2, 3]),)], [1, (np.array([2, 4]),)])
    saved.match({"a": np.array([1.0])}, {"a": np.array([1.0])})
