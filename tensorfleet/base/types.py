"""Types that many functions share. They are for readers, editors and type checkers; nothing looks at them at run time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from tensorfleet.base.dtypes import DType
    from tensorfleet.base.protos import NodeDef
    from tensorfleet.base.shapes import Dimension, TensorShape

#: An array in a kernel: of NumPy, or of JAX while XLA traces it. Both have the methods that kernels use.
Array: TypeAlias = np.ndarray[Any, Any]

#: Anything that `tf.convert_to_tensor` takes: tensors, variables, numbers, strings, arrays, nested lists of these, and
#: instances of classes with a registered conversion. It is `object`, not `Any`: convert it before you use it.
TensorLike: TypeAlias = object

#: A dtype as users write it: `tf.float32`, `np.float32`, `"float32"`, `float`, or its number in GraphDef.
DTypeLike: TypeAlias = "DType | np.dtype[Any] | type | str | int"

#: A static shape as users write it. None means that nothing is known, in a list that the dimension is unknown.
ShapeLike: TypeAlias = "TensorShape | Sequence[int | Dimension | None] | int | None"

#: The dimensions of a shape that is fully known.
Dims: TypeAlias = tuple[int, ...]

#: The path of a file, as `tf.gfile` and everything that opens files takes it.
PathLike: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"

#: What a run is fed: values by tensor, variable or name. Composite tensors are keys too.
FeedDict: TypeAlias = Mapping[Any, TensorLike]

#: Bytes, in whatever holds them: Python 3.12 has `collections.abc.Buffer` for it.
Buffer: TypeAlias = "bytes | bytearray | memoryview | Array"


class FailedOperation(Protocol):
    """The parts of a `tf.Operation` that an error shows. The class itself belongs to a later folder."""

    @property
    def name(self) -> str:
        """Its name in the graph."""

    @property
    def type(self) -> str:
        """The name of its op."""

    @property
    def source_line(self) -> str:
        """The user's line that made it."""

    @property
    def node_def(self) -> NodeDef:
        """Itself as a message."""


class ArrayFunctions(Protocol):
    """A namespace of functions on arrays, such as `numpy.linalg`."""

    def __getattr__(self, name: str) -> Callable[..., Array]: ...


class ArrayModule(ArrayFunctions, Protocol):
    """The array namespace that a kernel is given as `xp`: `numpy`, or `jax.numpy` while a segment is traced."""

    @property
    def linalg(self) -> ArrayFunctions:
        """Linear algebra."""

    @property
    def fft(self) -> ArrayFunctions:
        """Fourier transforms."""

    @property
    def pi(self) -> float:
        """π."""

    @property
    def inf(self) -> float:
        """Infinity."""

    @property
    def nan(self) -> float:
        """Not a number."""

    @property
    def newaxis(self) -> None:
        """The index that adds a dimension."""
