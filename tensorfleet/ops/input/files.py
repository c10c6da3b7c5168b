"""Whole files as strings, and the names of files that match a pattern."""

from __future__ import annotations

import os

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base import files as gfile
from tensorfleet.base.file_systems import file_system
from tensorfleet.base.files import whole_file
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.example_wire import objects
from tensorfleet.ops.common import SCALAR, vector_of


def one_string(value: Array, what: str) -> bytes:
    """The only element of a string tensor."""
    flat = np.asarray(value, object).ravel()
    if np.ndim(value) or flat.size != 1:
        raise errors.invalid(f"Input {what} tensor must be scalar, but had shape: {list(np.shape(value))}")
    text: bytes = flat[0]
    return text


@op("ReadFile", "filename: string[0] -> contents: string", shape=lambda op: SCALAR, host=True)
def _read_file(ctx: HostContext, filename: Array) -> Array:
    out = np.empty((), object)
    out[()] = whole_file(one_string(filename, "filename"))
    return out


@export("io.read_file", "read_file")
def read_file(filename: TensorLike, name: str | None = None) -> Tensor:
    """The whole contents of a file, as a string."""
    return apply("ReadFile", filename, name=name)


@op("WriteFile", "filename: string[0], contents: string[0] ->", host=True, stateful=True)
def _write_file(ctx: HostContext, filename: Array, contents: Array) -> None:
    path = gfile.file_path(one_string(filename, "filename"))
    data = one_string(contents, "contents")
    with gfile.errors_about(path):
        file_system(path).makedirs(os.path.dirname(path) or ".")
        with file_system(path).open(path, "wb") as file:
            file.write(data)


@export("io.write_file", "write_file")
def write_file(filename: TensorLike, contents: TensorLike, name: str | None = None) -> Operation:
    """Writes a string to a file, making its directories if need be."""
    return apply_op("WriteFile", filename, contents, name=name)


def _matching_shape(op: Operation) -> TensorShape:
    if (op._inputs[0].shape.rank or 0) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {op._inputs[0].shape.rank}")
    return vector_of(None)


@op("MatchingFiles", "pattern: string -> filenames: string", shape=_matching_shape, host=True, stateful=True)
def _matching_files(ctx: HostContext, pattern: Array) -> Array:
    return objects(matches(pattern))


def matches(patterns: Array) -> list[bytes]:
    """The names of the files that match one of some patterns, sorted."""
    names: set[bytes] = set()
    for pattern in np.asarray(patterns, object).ravel():
        names.update(os.fsencode(name) for name in gfile.glob(pattern))
    return sorted(names)


@export("io.matching_files", "matching_files")
def matching_files(pattern: TensorLike, name: str | None = None) -> Tensor:
    """The names of the files that match a pattern, or one of several, sorted."""
    return apply("MatchingFiles", pattern, name=name)


not_differentiable("ReadFile", "WriteFile", "MatchingFiles")
