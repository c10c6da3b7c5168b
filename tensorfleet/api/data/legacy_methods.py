"""Methods that datasets had in TensorFlow 1.2 and 1.3; what they do is a transformation to `apply` since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import find


class OldForms:
    """The methods of the first datasets, as scripts for `tf.contrib.data.Dataset` call them."""

    apply: Callable[[Callable], Any]

    def group_by_window(self, key_func: Callable, reduce_func: Callable, window_size: Any) -> Any:
        """Groups of up to `window_size` elements with the same key, each turned into elements by `reduce_func`."""
        return self.apply(find("contrib.data.group_by_window")(key_func, reduce_func, window_size))

    def dense_to_sparse_batch(self, batch_size: Any, row_shape: Any) -> Any:
        """Elements of different lengths together as rows of a sparse tensor."""
        return self.apply(find("contrib.data.dense_to_sparse_batch")(batch_size, row_shape))

    def ignore_errors(self) -> Any:
        """The elements that do not fail."""
        return self.apply(find("contrib.data.ignore_errors")())
