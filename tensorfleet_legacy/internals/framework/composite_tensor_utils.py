"""Queries about composite values, and small settings of TensorFlow's own tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorfleet.base.naming import export, find
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue

_HERE = "python.framework.composite_tensor_utils."


@export(_HERE + "is_composite_or_composite_value")
def is_composite_or_composite_value(tensor: Any) -> bool:
    """Whether a value consists of several tensors or arrays."""
    return isinstance(tensor, (CompositeTensor, SparseTensorValue, RaggedTensorValue))


@export(_HERE + "get_shape")
def get_shape(tensor: Any) -> Any:
    """The shape of the whole."""
    return tensor.dense_shape if isinstance(tensor, SparseTensorValue) else tensor.shape


@export(_HERE + "append_composite_tensor")
def append_composite_tensor(target: Any, to_append: Any) -> Any:
    """The rows of one value, then those of another of the same kind."""
    if type(target) is not type(to_append):
        raise RuntimeError(f"Unable to concatenate {target} and {to_append}: their types differ.")
    if isinstance(target, SparseTensor):
        return find("sparse.concat")(0, [target, to_append])
    if isinstance(target, RaggedTensor):
        return find("concat")([target, to_append], 0)
    if isinstance(target, SparseTensorValue):
        return _more_rows(target, to_append)
    if isinstance(target, RaggedTensorValue):
        values = np.concatenate([target.values, to_append.values])
        splits = np.asarray(to_append.row_splits)[1:] + np.asarray(target.row_splits)[-1]
        return RaggedTensorValue(values, np.concatenate([target.row_splits, splits]))
    raise RuntimeError(f"Attempted to concatenate unsupported object {target}.")


def _more_rows(first: SparseTensorValue, second: SparseTensorValue) -> SparseTensorValue:
    shapes = np.asarray(first.dense_shape), np.asarray(second.dense_shape)
    if shapes[0][1:].tolist() != shapes[1][1:].tolist():
        raise RuntimeError(f"Unable to concatenate {first} and {second}: the inner shapes differ.")
    moved = np.array(second.indices)
    moved[:, 0] += shapes[0][0]
    whole = shapes[0].copy()
    whole[0] += shapes[1][0]
    return SparseTensorValue(
        np.concatenate([first.indices, moved]), np.concatenate([first.values, second.values]), whole
    )


@export("python.ops.spectral_ops_test_util.fft_kernel_label_map")
@contextmanager
def fft_kernel_label_map() -> Iterator[None]:
    """A block in which Fourier transforms run with the kernels there are."""
    yield


@export("python.ops.ragged.ragged_config.auto_cast_partition_dtype")
def auto_cast_partition_dtype() -> bool:
    """False: row splits of different types are not cast."""
    return False


@export("python.util.compat_internal.path_to_str")
def path_to_str(path: Any) -> Any:
    """A path as text."""
    return path.__fspath__() if hasattr(path, "__fspath__") else path
