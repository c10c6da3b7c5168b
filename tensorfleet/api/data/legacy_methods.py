"""Methods that datasets had in TensorFlow 1.2 and 1.3; since then they are transformations for `apply`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.base.types import ShapeLike, TensorLike

if TYPE_CHECKING:
    from tensorfleet.api.data.dataset import Dataset


class LegacyMethods:
    """The methods of the first datasets, as scripts for `tf.contrib.data.Dataset` call them."""

    apply: Callable[[Callable[[Dataset], Dataset]], Dataset]

    def group_by_window(
        self, key_func: Callable[..., Any], reduce_func: Callable[..., Any], window_size: TensorLike
    ) -> Dataset:
        """Groups of up to `window_size` elements with the same key, each turned into elements by `reduce_func`."""
        from tensorfleet.api.data.experimental import group_by_window  # which imports datasets

        return self.apply(group_by_window(key_func, reduce_func, window_size))

    def dense_to_sparse_batch(self, batch_size: TensorLike, row_shape: ShapeLike) -> Dataset:
        """Elements of different lengths together as rows of a sparse tensor."""
        from tensorfleet.api.data.experimental_sources import dense_to_sparse_batch

        return self.apply(dense_to_sparse_batch(batch_size, row_shape))

    def ignore_errors(self) -> Dataset:
        """The elements that do not fail."""
        from tensorfleet.api.data.experimental import ignore_errors

        return self.apply(ignore_errors())
