"""Bases of TensorFlow's tests of datasets and of Keras: their test case, and samples of classes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors, nest
from tensorfleet.base.naming import find
from tensorfleet.graph.sparse_tensor import SparseTensorValue
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue
from tensorfleet_legacy.testing.test_util import TestCase


class DatasetTestBase(TestCase):
    """Assertions about what datasets give."""

    def assert_op_cancelled(self, op: Any) -> None:
        """Running something fails because it was cancelled."""
        with self.assertRaises(errors.CancelledError):
            self.evaluate(op)

    def assertValuesEqual(self, expected: Any, actual: Any) -> None:
        """Two elements are equal; sparse ones in their parts."""
        if isinstance(expected, SparseTensorValue):
            self.assertSparseValuesEqual(expected, actual)
        else:
            self.assertAllEqual(expected, actual)

    def assertSparseValuesEqual(self, a: Any, b: Any) -> None:
        """Two sparse values are equal."""
        self.assertAllEqual(a.indices, b.indices)
        self.assertAllEqual(a.values, b.values)
        self.assertAllEqual(a.dense_shape, b.dense_shape)

    def getNext(
        self, dataset: Any, requires_initialization: bool = False, shared_name: str | None = None
    ) -> Callable[[], Any]:
        """A function that gives the tensors of the next element."""
        if requires_initialization:
            iterator = dataset.make_initializable_iterator(shared_name)
            self.evaluate(iterator.initializer)
        else:
            iterator = dataset.make_one_shot_iterator()
        element = iterator.get_next()
        return lambda: element

    def getDatasetOutput(self, dataset: Any, requires_initialization: bool = False) -> list:
        """All elements of a dataset."""
        get_next = self.getNext(dataset, requires_initialization)
        results: list = []
        while True:
            try:
                results.append(self.evaluate(get_next()))
            except errors.OutOfRangeError:
                return results

    def _compareOutputToExpected(
        self, result_values: list, expected_values: list, assert_items_equal: bool
    ) -> None:
        if assert_items_equal:
            self.assertItemsEqual(expected_values, result_values)
            return
        self.assertEqual(len(result_values), len(expected_values))
        for result, expected in zip(result_values, expected_values, strict=True):
            self._assert_same(expected, result)

    def _assert_same(self, expected: Any, actual: Any) -> None:
        composite = isinstance(expected, (SparseTensorValue, RaggedTensorValue, RaggedTensor))
        if composite or not nest.is_nested(actual) or isinstance(actual, SparseTensorValue):
            self.assertValuesEqual(expected, actual)
            return
        mine = list(expected.values()) if isinstance(expected, dict) else list(expected)
        theirs = [actual[k] for k in expected] if isinstance(actual, dict) else list(actual)
        self.assertEqual(len(mine), len(theirs))
        for x, y in zip(mine, theirs, strict=True):
            self._assert_same(x, y)

    def assertDatasetProduces(
        self,
        dataset: Any,
        expected_output: Any = None,
        expected_shapes: Any = None,
        expected_error: Any = None,
        requires_initialization: bool = False,
        num_test_iterations: int = 1,
        assert_items_equal: bool = False,
        expected_error_iter: int = 1,
    ) -> None:
        """A dataset gives the elements expected and then ends, or fails with the error expected."""
        self.assertTrue(
            expected_error is not None or expected_output is not None,
            "Exactly one of expected_output or expected error should be provided.",
        )
        if expected_error is not None:
            self._expect_error(dataset, expected_error, requires_initialization, expected_error_iter)
            return
        if expected_shapes is not None:
            self.assertEqual(expected_shapes, dataset.output_shapes)
        for _ in range(max(num_test_iterations, 1)):
            get_next = self.getNext(dataset, requires_initialization)
            results = [self.evaluate(get_next()) for _ in range(len(expected_output))]
            self._compareOutputToExpected(results, expected_output, assert_items_equal)
            for _ in range(2):
                with self.assertRaises(errors.OutOfRangeError):
                    self.evaluate(get_next())

    def _expect_error(self, dataset: Any, expected: Any, requires_initialization: bool, count: int) -> None:
        kind, text = expected if isinstance(expected, tuple) else (expected, "")
        fits = text if callable(text) else str(text).replace("(", "\\(").replace(")", "\\)")
        with self.assertRaisesWithPredicateMatch(kind, fits):
            get_next = self.getNext(dataset, requires_initialization)
            for _ in range(count):
                self.evaluate(get_next())

    def assertDatasetsEqual(self, dataset1: Any, dataset2: Any) -> None:
        """Two datasets have the same structure and give the same elements."""
        self.assertEqual(dataset1.output_types, dataset2.output_types)
        self.assertEqual(dataset1.output_classes, dataset2.output_classes)
        first, second = self.getDatasetOutput(dataset1), self.getDatasetOutput(dataset2)
        self._compareOutputToExpected(second, first, assert_items_equal=False)

    def assertDatasetsRaiseSameError(
        self, dataset1: Any, dataset2: Any, exception_class: Any, replacements: Any = None
    ) -> None:
        """Two datasets fail with the same error; `replacements` change the first one's text before it is compared.

        Each is what `str.replace` takes: the old part, the new one and perhaps how often.
        """
        with self.assertRaises(exception_class) as caught:
            self.evaluate(self.getNext(dataset1)())
        text = str(caught.exception).split("\n")[0]
        for replacement in replacements or []:
            text = text.replace(*replacement)
        with self.assertRaisesRegex(exception_class, re.escape(text)):
            self.evaluate(self.getNext(dataset2)())

    def structuredDataset(self, structure: Any, shape: Any = None, dtype: Any = dtypes.int64) -> Any:
        """A dataset of one element for each place of a structure."""
        dataset = find("data.Dataset")
        if structure is None:
            return dataset.from_tensors(np.zeros(shape or [], dtypes.as_dtype(dtype).np_dtype))
        return dataset.zip(
            nest.map_structure(lambda s: self.structuredDataset(None, shape, dtype), structure)
        )

    def structuredElement(self, structure: Any, shape: Any = None, dtype: Any = dtypes.int64) -> Any:
        """The elements of the dataset."""
        if structure is None:
            return find("zeros")(shape or [], dtype=dtype)
        return nest.map_structure(lambda s: self.structuredElement(None, shape, dtype), structure)


def get_test_data(
    train_samples: int,
    test_samples: int,
    input_shape: tuple[int, ...],
    num_classes: int,
    random_seed: int | None = None,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Points around one centre for each class, and their classes: those to train with, those to test with."""
    if random_seed is not None:
        np.random.seed(random_seed)
    centres = np.random.uniform(0, 2 * num_classes, (num_classes, *input_shape))
    classes = np.random.randint(num_classes, size=train_samples + test_samples)
    points = centres[classes] + np.random.normal(size=(len(classes), *input_shape))
    points = points.astype(np.float32)
    return (points[:train_samples], classes[:train_samples]), (
        points[train_samples:],
        classes[train_samples:],
    )
