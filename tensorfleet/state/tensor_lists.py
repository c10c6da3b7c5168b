"""Lists of tensors as immutable values: a change gives a new list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.shapes import TensorShape, shape_text

if TYPE_CHECKING:
    from tensorfleet.base.shapes import AnyShape


# Lists may lie in lists.
_Element: TypeAlias = "np.ndarray | TensorList"


class TensorList:
    """Elements of one type whose shapes fit one shape; an element that was never set is None."""

    __slots__ = ("dtype", "elements", "most", "of_shape")
    shape = ()  # of the list itself, which is one value

    def __init__(
        self, dtype: dtypes.DType, of_shape: TensorShape, elements: list[Any], most: int = -1
    ) -> None:
        self.dtype = dtype
        self.of_shape = of_shape
        self.elements = elements
        self.most = most

    def having(self, elements: list[Any]) -> TensorList:
        """A list of the same kind with other elements."""
        return TensorList(self.dtype, self.of_shape, elements, self.most)

    def zeros(self) -> TensorList:
        """A list of zeros in place of the elements that are set."""
        return self.having([None if v is None else _zeros_of(v) for v in self.elements])

    def __add__(self, other: TensorList) -> TensorList:
        if len(self.elements) != len(other.elements):
            raise errors.invalid(
                f"Trying to add two lists of tensors with different lengths. One is {len(self.elements)} and the "
                f"other is {len(other.elements)}"
            )
        pairs = zip(self.elements, other.elements, strict=True)
        sums = [b if a is None else a if b is None else _element(a + b) for a, b in pairs]
        try:
            shape = merged(self.of_shape, other.of_shape)
        except errors.InvalidArgumentError as e:
            raise errors.invalid(
                f"Trying to add two lists of tensors with incompatible element shapes. {e.message}"
            ) from None
        return TensorList(self.dtype, shape, sums, self.most)

    def check_type(self, dtype: dtypes.DType) -> None:
        """The error when elements of another type are asked for."""
        if self.dtype != dtype:
            raise errors.invalid(
                f"Invalid data types; op elements {dtype.name} but list elements {self.dtype.name}"
            )

    def check_shape(self, value: _Element, what: str) -> None:
        """The error for a value that does not fit."""
        if not self.of_shape.is_compatible_with(value.shape):
            raise errors.invalid(
                f"{what} element shape: {text_of(value.shape)} list shape: {text_of(self.of_shape)}"
            )

    def at(self, index: int, wanted: TensorShape) -> np.ndarray:
        """One element; zeros, of the shape asked for, if it was never set."""
        value = self.elements[index]
        shape = merged(wanted, self.of_shape)
        if value is not None:
            element: np.ndarray = value
            merged(shape, TensorShape(element.shape))
            return element
        if not shape.is_fully_defined():
            raise errors.invalid(
                "Trying to read an uninitialized tensor but element_shape is not fully defined: "
                f"{text_of(shape)}. Set the element first."
            )
        return np.zeros(shape.as_list(), self.dtype.np_dtype)

    def common_shape(self, chosen: list[Any], wanted: TensorShape, verb: str) -> TensorShape:
        """The shape that some elements have together; it must be known."""
        shape = merged(wanted, self.of_shape)
        for value in chosen:
            if value is not None:
                shape = merged(shape, TensorShape(value.shape))
        if shape.is_fully_defined():
            return shape
        if not chosen:
            raise errors.invalid(
                f"Tried to {verb} elements of an empty list with non-fully-defined element_shape: {text_of(shape)}"
            )
        what = "stack list which only contains uninitialized tensors and has a"
        if verb == "gather":
            what = "gather uninitialized tensors from a list with"
        raise errors.invalid(f"Tried to {what} non-fully-defined element_shape: {text_of(shape)}")

    def together(self, chosen: list[Any], wanted: TensorShape, verb: str) -> np.ndarray:
        """Some elements as one tensor; zeros for those never set."""
        dims = tuple(self.common_shape(chosen, wanted, verb).as_list())
        result = np.zeros((len(chosen), *dims), self.dtype.np_dtype)
        # np.zeros of objects gives the number 0.
        if self.dtype == dtypes.string:
            result[...] = b""
        for i, value in enumerate(chosen):
            if value is not None:
                result[i] = value
        return result


def _zeros_of(value: _Element) -> _Element:
    return value.zeros() if isinstance(value, TensorList) else np.zeros_like(value)


def _element(value: object) -> _Element:
    return value if isinstance(value, TensorList) else np.asarray(value)


def merged(a: TensorShape, b: TensorShape) -> TensorShape:
    """The dimensions known from both shapes."""
    if a.rank is not None and b.rank is not None and a.rank != b.rank:
        raise errors.invalid(f"Incompatible ranks during merge: {a.rank} vs. {b.rank}")
    try:
        return a.merge_with(b)
    except ValueError:
        raise errors.invalid(f"Incompatible shapes during merge: {text_of(a)} vs. {text_of(b)}") from None


def shape_from(value: object) -> TensorShape:
    """The shape that a scalar -1, or sizes with -1 for unknown ones, stand for."""
    sizes = np.asarray(value)
    if sizes.ndim == 0:
        if sizes != -1:
            raise errors.invalid(
                "The only valid scalar shape tensor is the fully unknown shape specified as -1."
            )
        return TensorShape(None)
    return TensorShape([None if d < 0 else int(d) for d in sizes])


def text_of(shape: AnyShape) -> str:
    """A shape as messages show it."""
    return shape_text(TensorShape(shape)._d)
