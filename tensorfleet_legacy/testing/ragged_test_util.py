"""`tensorflow.python.ops.ragged.ragged_test_util`: what TensorFlow's own tests assert about ragged tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.basic import placeholder_with_default
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue
from tensorfleet_legacy.testing.test_util import TestCase

_RAGGED = (RaggedTensor, RaggedTensorValue)


class RaggedTensorTestCase(TestCase):
    """A test of ragged tensors."""

    def eval_to_list(self, tensor: Any) -> Any:
        """The value of a tensor as nested lists."""
        value = self.evaluate(tensor) if isinstance(tensor, (Tensor, RaggedTensor)) else tensor
        if isinstance(value, RaggedTensorValue):
            return value.to_list()
        return value.tolist() if isinstance(value, np.ndarray) else value

    def assertRaggedEqual(self, a: Any, b: Any) -> None:
        """Two tensors, ragged or not, have the same rows, and are ragged in the same dimensions."""
        self.assertEqual(self._lists(a), self._lists(b))
        self._assert_same_ragged_rank(a, b)

    def assertRaggedAlmostEqual(self, a: Any, b: Any, places: int = 7) -> None:
        """Two tensors, ragged or not, have rows of nearly the same numbers."""
        self._assert_almost(self._lists(a), self._lists(b), places, "value")
        self._assert_same_ragged_rank(a, b)

    def _lists(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._lists(v) for v in value]
        return self.eval_to_list(value)

    def _assert_same_ragged_rank(self, a: Any, b: Any) -> None:
        if not any(isinstance(v, (list, tuple)) for v in (a, b)):
            ranks = [v.ragged_rank if isinstance(v, _RAGGED) else 0 for v in (a, b)]
            self.assertEqual(*ranks)

    def _assert_almost(self, a: Any, b: Any, places: int, where: str) -> None:
        self.assertEqual(isinstance(a, list), isinstance(b, list), where)
        if not isinstance(a, list):
            self.assertAlmostEqual(a, b, places, where)
            return
        self.assertLen(a, len(b), f"Length differs for {where}")
        for i, (one, other) in enumerate(zip(a, b, strict=True)):
            self._assert_almost(one, other, places, f"{where}[{i}]")

    def rebuild_ragged_tensor_with_value_rowids(
        self, rt: Any, feed_dict: dict | None = None, sess: Any = None
    ) -> Any:
        """The same ragged tensor, made from the numbers of its rows; of placeholders that are fed if there is a `feed_dict`."""
        if not isinstance(rt, RaggedTensor):
            return rt if feed_dict is None else self._fed(rt, feed_dict, sess)
        values = self.rebuild_ragged_tensor_with_value_rowids(rt.values, feed_dict, sess)
        rows, count = rt.value_rowids(), rt.nrows()
        if feed_dict is not None:
            rows, count = self._fed(rows, feed_dict, sess), self._fed(count, feed_dict, sess)
        return RaggedTensor.from_value_rowids(values, rows, count)

    def _fed(self, tensor: Any, feed_dict: dict, sess: Any) -> Tensor:
        result = placeholder_with_default(tensor, None)
        feed_dict[result] = sess.run(tensor)
        return result
