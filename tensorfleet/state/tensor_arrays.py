"""The contents of a TensorArray or a Stack while a step runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape, shape_text

if TYPE_CHECKING:
    from tensorfleet.base.types import Array


class ArrayStore:
    """The elements of one TensorArray, in one step."""

    __slots__ = (
        "adds",
        "clears",
        "closed",
        "dense",
        "dtype",
        "dynamic",
        "elements",
        "flags",
        "grads",
        "identical",
        "name",
        "shape",
        "shapes",
    )

    def __init__(
        self,
        dtype: DType,
        size: int,
        shape: TensorShape,
        dynamic: bool = False,
        clears: bool = True,
        identical: bool = False,
        name: str = "",
        adds: bool = False,
    ) -> None:
        if size < 0:
            raise errors.invalid(f"Size should be >= 0. Got: {size}")
        self.dtype = dtype
        self.shape = shape
        self.dynamic = dynamic
        self.clears = clears
        self.identical = identical
        self.name = name
        self.adds = adds  # a gradient: what is written twice is added up
        self.closed = False
        self.elements: list[Array | None] = [None] * size
        self.flags: list[str] = [""] * size  # "w" written, "r" read, "c" cleared, "?" perhaps written
        self.shapes: list[tuple[int, ...] | None] = [None] * size
        self.grads: dict[bytes, ArrayStore] = {}
        #: all elements as one array, if there is one: those marked written that are None in `elements` are here
        self.dense: Array | None = None

    def _wrong(self, text: str) -> errors.OpError:
        return errors.invalid(f"TensorArray {self.name}: {text}")

    def _open(self) -> None:
        if self.closed:
            raise errors.invalid(f"TensorArray {self.name} has already been closed.")

    def write(self, index: int, value: Array) -> None:
        """Sets one element."""
        self._open()
        size = len(self.elements)
        if index < 0:
            raise self._wrong(f"Tried to write to index {index} but array size is: {size}")
        if index >= size:
            if not self.dynamic:
                raise self._wrong(
                    f"Tried to write to index {index} but array is not resizeable and size is: {size}"
                )
            more = index + 1 - size
            self.elements += [None] * more
            self.flags += [""] * more
            self.shapes += [None] * more
        self._check_shape(index, value)
        if self.dense is not None:
            self._spread()
        flags = self.flags[index]
        before = self.elements[index]
        # Gradients of several readers of one element add up; in any other array a second write is an error.
        if self.adds and before is not None:
            if before.shape != value.shape:
                raise self._wrong(
                    f"Could not aggregate to TensorArray index {index} because the existing shape is "
                    f"{shape_text(before.shape)} but the new input shape is {shape_text(value.shape)}."
                )
            self.elements[index] = np.add(before, value)
            return
        if "r" in flags:
            raise self._wrong(
                f"Could not write to TensorArray index {index} because it has already been read."
            )
        if "w" in flags:
            raise self._wrong(
                f"Could not write to TensorArray index {index} because it has already been written to."
            )
        self.elements[index] = value
        self.shapes[index] = value.shape
        self.flags[index] = "w"

    def _check_shape(self, index: int, value: Array) -> None:
        known = self.shape._d
        if known is not None and (
            len(known) != value.ndim
            or any(k is not None and k != d for k, d in zip(known, value.shape, strict=True))
        ):
            raise self._wrong(
                f"Could not write to TensorArray index {index} because the value shape is {shape_text(value.shape)} "
                f"which is incompatible with the TensorArray's inferred element shape: {self.shape} (consider "
                "setting infer_shape=False)."
            )
        if self.identical and (known is None or None in known):
            self.shape = TensorShape._of(value.shape)

    def read(self, index: int) -> Array:
        """One element; it is gone then, if the array clears after reading."""
        self._open()
        size = len(self.elements)
        if not 0 <= index < size:
            raise self._wrong(f"Tried to read from index {index} but array size is: {size}")
        flags = self.flags[index]
        if "c" in flags:
            raise self._wrong(
                f"Could not read index {index} twice because it was cleared after a previous read (perhaps try "
                "setting clear_after_read = false?)."
            )
        value = self.elements[index]
        if value is None:
            kept = self.dense is not None and flags[:1] in ("w", "?")
            value = np.asarray(self.dense)[index] if kept else self._missing(index)
        self.flags[index] = "wrc" if self.clears else "wr"
        if self.clears:
            self.elements[index] = None
        return value

    def _missing(self, index: int) -> Array:
        # As in TensorFlow, an element that was never written reads as zeros if its shape is known.
        shape = self.shapes[index]
        if shape is None and self.shape.is_fully_defined():
            shape = tuple(self.shape.as_list())
        if shape is None:
            raise self._wrong(
                f"Could not read from TensorArray index {index}.  Furthermore, the element shape is not fully "
                f"defined: {self.shape}.  It is possible you are working with a resizeable TensorArray and "
                "stop_gradients is not allowing the gradients to be written.  If you set the full element_shape "
                "property on the forward TensorArray, the proper all-zeros tensor will be returned instead of "
                "incurring this error."
            )
        return np.zeros(shape, self.dtype.np_dtype)

    def _spread(self) -> None:
        """Elements one by one again."""
        dense, self.dense = np.asarray(self.dense), None
        for i, value in enumerate(self.elements):
            if value is None and self.flags[i] in ("w", "wr", "?"):
                self.elements[i] = dense[i]

    def packed(self) -> Array | None:
        """All elements as one array; None when there are none, or none that fit together."""
        if self.dense is not None:
            return self.dense
        shapes = {v.shape for v in self.elements if v is not None}
        if len(shapes) != 1:
            return None
        zeros = np.zeros(shapes.pop(), self.dtype.np_dtype)
        return np.stack([zeros if v is None else v for v in self.elements])

    def fill(self, dense: Array) -> None:
        """Takes all elements from one array."""
        count = len(self.elements)
        self.dense = dense
        self.elements = [None] * count
        # A compiled loop writes all rows at once and does not tell which of them it wrote.
        self.flags = [f or "?" for f in self.flags]
        self.shapes = [tuple(dense.shape[1:])] * count
        if self.identical:
            self.shape = TensorShape._of(tuple(dense.shape[1:]))

    def keep(self, dense: Array) -> None:
        """Notes the array whose rows the elements are."""
        self.dense = dense

    def whole(self, indices: Array) -> Array | None:
        """All elements as one array, if `indices` ask for all and the array is at hand."""
        count = len(self.elements)
        if self.dense is None or len(indices) != count or "c" in "".join(self.flags):
            return None
        if count and not np.array_equal(indices, np.arange(count)):
            return None
        if self.clears:
            self.flags = ["wrc"] * count
        return np.asarray(self.dense)

    def grad(self, source: bytes, prepended: tuple[int, ...] = ()) -> ArrayStore:
        """The array that collects the gradients of this one's elements for one call of `tf.gradients`."""
        self._open()
        result = self.grads.get(source)
        if result is None:
            shape = TensorShape(prepended).concatenate(self.shape)
            result = ArrayStore(
                self.dtype, len(self.elements), shape, False, self.clears, self.identical, self.name, True
            )
            result.shapes = [None if s is None else (*prepended, *s) for s in self.shapes]
            self.grads[source] = result
            # As in TensorFlow: once there is a gradient array of this size, the array does not grow.
            self.dynamic = False
        return result


class StackStore:
    """Values that a loop leaves for its gradient, last in first out.

    What a compiled loop pushed in one run lies here as one chunk: the first rows of an array.
    """

    __slots__ = ("closed", "items", "most", "name")

    def __init__(self, most: int, name: str) -> None:
        self.most = most
        self.name = name
        self.items: list[Any] = []
        self.closed = False

    def push(self, value: object) -> None:
        """Puts a value on top."""
        self._open()
        if 0 <= self.most <= len(self.items):
            raise errors.invalid(f"Stack[{self.name}] overflowed its max_size ({self.most})")
        self.items.append(value)

    def pop(self) -> Any:
        """Takes the value on top."""
        self._open()
        if not self.items:
            raise errors.invalid(f"Stack[{self.name}] is empty when calling Pop().")
        top = self.items[-1]
        if not isinstance(top, _Chunk):
            return self.items.pop()
        self.shorten(top.count - 1)
        return np.asarray(top.rows)[top.count]

    def packed(self) -> tuple[Array | None, np.int32]:
        """The values on top as one array, and their number; no array if their shapes differ."""
        if self.items and isinstance(self.items[-1], _Chunk):
            return self.items[-1].rows, np.int32(self.items[-1].count)
        values = self.items[self._single() :]
        fit = len({np.shape(v) for v in values}) == 1 and isinstance(values[0], np.ndarray | np.generic)
        return np.stack(values) if fit else None, np.int32(len(values))

    def _single(self) -> int:
        """Where the single values above the last chunk begin."""
        start = len(self.items)
        while start and not isinstance(self.items[start - 1], _Chunk):
            start -= 1
        return start

    def fill(self, rows: Array, count: int) -> None:
        """Puts the first rows of an array on top."""
        if count:
            self.items.append(_Chunk(rows, count))

    def shorten(self, count: int) -> None:
        """Leaves only the lowest of the values that `packed` gave."""
        if isinstance(self.items[-1], _Chunk):
            self.items[-1].count = count
            if not count:
                self.items.pop()
        else:
            del self.items[self._single() + count :]

    def _open(self) -> None:
        if self.closed:
            raise errors.invalid(f"Stack[{self.name}] has already been closed.")


class _Chunk:
    __slots__ = ("count", "rows")

    def __init__(self, rows: Array, count: int) -> None:
        self.rows = rows
        self.count = count
