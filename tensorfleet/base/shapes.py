"""Static shapes: `tf.Dimension` and `tf.TensorShape`, either of which may be unknown."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from tensorfleet.base.protos import TensorShapeProto
    from tensorfleet.base.types import ShapeLike


T = TypeVar("T")
#: A dimension as users write it; text and floats are taken if they are whole numbers.
DimensionLike: TypeAlias = "SupportsIndex | float | str | bytes | None"
#: Whatever has dimensions. Wider than `ShapeLike`: arrays of numbers and messages too.
AnyShape: TypeAlias = "ShapeLike | Iterable[DimensionLike] | TensorShapeProto"


def _arithmetic(f: Callable[[int, int], int]) -> Callable[[Dimension, DimensionLike], Dimension]:
    def method(self: Dimension, other: DimensionLike) -> Dimension:
        try:
            value = as_dimension(other).value
        except (TypeError, ValueError):
            return cast(Dimension, NotImplemented)
        if self._value is None or value is None:
            return Dimension(None)
        return Dimension(f(self._value, value))

    return method


def _comparison(f: Callable[[int, int], bool]) -> Callable[[Dimension, object], Any]:
    def method(self: Dimension, other: object) -> bool | None:
        try:
            value = as_dimension(other).value  # type: ignore[arg-type]  # anything may be compared
        except (TypeError, ValueError):
            return cast(None, NotImplemented)
        if self._value is None or value is None:
            return None  # not False: whether an unknown dimension is that number is not known
        return f(self._value, value)

    return method


class Dimension:
    """One dimension of a shape: a number, or unknown (`value` is None)."""

    __slots__ = ("_value",)
    _value: int | None

    def __init__(self, value: DimensionLike) -> None:
        if value is None or type(value) is int:
            self._value = value
        elif isinstance(value, Dimension):
            self._value = value.value
        elif hasattr(value, "as_datatype_enum"):
            raise TypeError(f"Cannot convert {value!r} to Dimension")
        else:
            try:
                self._value = int(value.__index__() if hasattr(value, "__index__") else value)
            except (TypeError, ValueError):
                raise TypeError(
                    f"Dimension value must be integer or None or have __index__: {value!r}"
                ) from None
            if (
                not isinstance(value, (str, bytes))
                and not hasattr(value, "__index__")
                and self._value != value
            ):
                raise ValueError(f"Ambiguous dimension: {value!r}")
        if self._value is not None and self._value < 0:
            raise ValueError(f"Dimension {self._value} must be >= 0")

    @property
    def value(self) -> int | None:
        """The number, or None when unknown."""
        return self._value

    def is_compatible_with(self, other: DimensionLike) -> bool:
        """Whether both could be the same number."""
        other = as_dimension(other)
        return self._value is None or other.value is None or self._value == other.value

    def assert_is_compatible_with(self, other: DimensionLike) -> None:
        """Raises ValueError unless both could be the same number."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {as_dimension(other)} are not compatible")

    def merge_with(self, other: DimensionLike) -> Dimension:
        """The more certain of the two; ValueError when they contradict."""
        other = as_dimension(other)
        self.assert_is_compatible_with(other)
        return other if self._value is None else self

    __add__ = __radd__ = _arithmetic(operator.add)
    __sub__ = _arithmetic(operator.sub)
    __rsub__ = _arithmetic(lambda a, b: b - a)
    __mul__ = __rmul__ = _arithmetic(operator.mul)
    __floordiv__ = __div__ = _arithmetic(operator.floordiv)
    __rfloordiv__ = _arithmetic(lambda a, b: b // a)
    __mod__ = _arithmetic(operator.mod)
    __rmod__ = _arithmetic(lambda a, b: b % a)

    def __truediv__(self, other: object) -> Dimension:
        raise TypeError(
            "unsupported operand type(s) for /: 'Dimension' and "
            f"'{type(other).__name__}', please use // instead"
        )

    def __rtruediv__(self, other: object) -> Dimension:
        raise TypeError(
            f"unsupported operand type(s) for /: '{type(other).__name__}' and "
            "'Dimension', please use // instead"
        )

    __eq__ = _comparison(operator.eq)
    __ne__ = _comparison(operator.ne)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)

    def __hash__(self) -> int:
        return hash(self._value)

    def __int__(self) -> int:
        return self._value  # type: ignore[return-value]  # None raises TypeError in int(), as wanted

    def __long__(self) -> int | None:
        return self._value

    def __index__(self) -> int:
        return self._value  # type: ignore[return-value]  # same

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"

    def __reduce__(self) -> tuple[type[Dimension], tuple[int | None]]:
        return Dimension, (self._value,)


def as_dimension(value: DimensionLike) -> Dimension:
    """Returns `value` as a Dimension."""
    return value if isinstance(value, Dimension) else Dimension(value)


def dimension_value(dimension: Dimension | T) -> int | T | None:
    """The number inside a Dimension; ints and None as they are."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """Dimension `index` of a shape, unknown when the rank is."""
    return Dimension(None) if shape.rank is None else shape[index]


def shape_text(dims: Iterable[int | None] | None) -> str:
    """Dimensions as TensorFlow's messages show them: `[2,?]`; `<unknown>` without a rank."""
    if dims is None:
        return "<unknown>"
    return f"[{','.join('?' if d is None else str(d) for d in dims)}]"


def difference(one: TensorShape, other: TensorShape) -> str:
    """Why two shapes cannot be one, as TensorFlow tells it of an operation's inputs."""
    a, b = one.as_list(), other.as_list()
    if len(a) != len(b):
        return f"Shapes must be equal rank, but are {len(a)} and {len(b)}"
    at = next(i for i, (m, n) in enumerate(zip(a, b, strict=True)) if None not in (m, n) and m != n)
    return (
        f"Dimension {at} in both shapes must be equal, but are {a[at]} and {b[at]}. "
        f"Shapes are {shape_text(a)} and {shape_text(b)}."
    )


class TensorShape:
    """The shape of a tensor: fully known, partly known, or unknown even in rank.

    Inside, `_d` is a tuple of ints and Nones, or None for unknown rank; the engine works on that.
    """

    __slots__ = ("_d",)
    _d: tuple[int | None, ...] | None

    def __init__(self, dims: AnyShape) -> None:
        if dims is None:
            self._d = None
        elif isinstance(dims, TensorShape):
            self._d = dims._d
        elif hasattr(dims, "unknown_rank") and hasattr(dims, "dim"):  # a TensorShapeProto
            self._d = None if dims.unknown_rank else tuple(None if d.size == -1 else d.size for d in dims.dim)
        elif isinstance(dims, (str, bytes)):
            raise TypeError(f"A shape cannot be made of {dims!r}")
        elif isinstance(dims, Iterable):
            self._d = tuple(d if type(d) is int and d >= 0 else Dimension(d).value for d in dims)
        else:
            self._d = (Dimension(dims).value,)

    @staticmethod
    def _of(dims: tuple[int | None, ...] | None) -> TensorShape:
        """A shape of an already clean tuple."""
        self = object.__new__(TensorShape)
        self._d = dims
        return self

    @property
    def dims(self) -> list[Dimension] | None:
        """The dimensions, or None when the rank is unknown."""
        return None if self._d is None else [Dimension(d) for d in self._d]

    _dims = dims  # the name inside, which Keras's own package uses

    @property
    def rank(self) -> int | None:
        """How many dimensions, or None."""
        return None if self._d is None else len(self._d)

    ndims = rank

    def __len__(self) -> int:
        if self._d is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._d)

    def __bool__(self) -> bool:
        return self._d is not None

    def __iter__(self) -> Iterator[Dimension]:
        if self._d is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter([Dimension(d) for d in self._d])

    def __getitem__(self, key: int | slice) -> Any:
        if self._d is not None:
            return TensorShape._of(self._d[key]) if isinstance(key, slice) else Dimension(self._d[key])
        if not isinstance(key, slice):
            return Dimension(None)
        start, stop = key.start or 0, key.stop
        if key.step is not None:
            raise ValueError("Steps are not yet handled")
        if stop is None or start < 0 or stop < 0:
            return TensorShape(None)
        return TensorShape([None] * max(stop - start, 0))

    def num_elements(self) -> int | None:
        """How many elements, or None when that is not known."""
        if self._d is None or None in self._d:
            return None
        n = 1
        for d in self._d:
            n *= d  # type: ignore[operator]
        return n

    def merge_with(self, other: AnyShape) -> TensorShape:
        """The dimensions known from both; ValueError when they contradict."""
        other = as_shape(other)
        if self._d is None:
            return other
        if other._d is None:
            return self
        if len(self._d) != len(other._d) or not self.is_compatible_with(other):
            error = ValueError(f"Shapes {self} and {other} are not compatible")
            error.between = (self, other)  # type: ignore[attr-defined]
            raise error
        return TensorShape._of(tuple(b if a is None else a for a, b in zip(self._d, other._d, strict=True)))

    def concatenate(self, other: AnyShape) -> TensorShape:
        """The dimensions of this followed by those of `other`."""
        other = as_shape(other)
        if self._d is None or other._d is None:
            return TensorShape(None)
        return TensorShape._of(self._d + other._d)

    def assert_same_rank(self, other: AnyShape) -> None:
        """Raises ValueError when both ranks are known and differ."""
        other = as_shape(other)
        if self._d is not None and other._d is not None and len(self._d) != len(other._d):
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError unless the rank is, or could be, `rank`."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, known to have that rank."""
        try:
            return self.merge_with(unknown_shape(rank))
        except ValueError:
            raise ValueError(f"Shape {self} must have rank {rank}") from None

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """The shape; ValueError when its rank is known to be lower."""
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """The shape; ValueError when its rank is known to be higher."""
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def is_compatible_with(self, other: AnyShape) -> bool:
        """Whether one tensor could have both shapes."""
        if isinstance(other, tuple) and self._d == other:
            return True  # the shape of an array, mostly
        other = as_shape(other)
        if self._d is None or other._d is None:
            return True
        if len(self._d) != len(other._d):
            return False
        return all(a is None or b is None or a == b for a, b in zip(self._d, other._d, strict=True))

    def assert_is_compatible_with(self, other: AnyShape) -> None:
        """Raises ValueError unless one tensor could have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def most_specific_compatible_shape(self, other: AnyShape) -> TensorShape:
        """The narrowest shape that covers both."""
        other = as_shape(other)
        if self._d is None or other._d is None or len(self._d) != len(other._d):
            return TensorShape(None)
        return TensorShape._of(tuple(a if a == b else None for a, b in zip(self._d, other._d, strict=True)))

    def is_fully_defined(self) -> bool:
        """Whether rank and every dimension are known."""
        return self._d is not None and None not in self._d

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError unless fully known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def as_list(self) -> list[Any]:
        """The dimensions as ints and Nones; ValueError when the rank is unknown."""
        if self._d is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._d)

    def as_proto(self) -> TensorShapeProto:
        """The shape as a `TensorShapeProto`."""
        from tensorfleet.base.protos import TensorShapeProto

        if self._d is None:
            return TensorShapeProto(unknown_rank=True)
        dims = [TensorShapeProto.Dim(size=-1 if d is None else d) for d in self._d]
        return TensorShapeProto(dim=dims)

    def __eq__(self, other: object) -> bool:
        try:
            other = as_shape(other)  # type: ignore[arg-type]  # anything may be compared
        except TypeError:
            return NotImplemented
        return self._d == other._d

    def __ne__(self, other: object) -> bool:
        if self._d is None:
            raise ValueError("The inequality of unknown TensorShapes is undefined.")
        try:
            other = as_shape(other)  # type: ignore[arg-type]  # anything may be compared
        except TypeError:
            return NotImplemented
        if other._d is None:
            raise ValueError("The inequality of unknown TensorShapes is undefined.")
        return self._d != other._d

    def __hash__(self) -> int:
        return hash(self._d)

    def __add__(self, other: AnyShape) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: AnyShape) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __str__(self) -> str:
        if self._d is None:
            return "<unknown>"
        inner = ", ".join("?" if d is None else str(d) for d in self._d)
        return f"({inner},)" if len(self._d) == 1 else f"({inner})"

    def __repr__(self) -> str:
        return f"TensorShape({self.dims!r})"

    def __reduce__(self) -> tuple[type[TensorShape], tuple[list[int | None] | None]]:
        return TensorShape, (None if self._d is None else list(self._d),)


def as_shape(shape: AnyShape) -> TensorShape:
    """Returns `shape` as a TensorShape."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(rank: int | None = None) -> TensorShape:
    """A shape of that rank, or of unknown rank, with nothing else known."""
    return TensorShape(None) if rank is None else TensorShape._of((None,) * rank)


def broadcast_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    """The shape two operands broadcast to; ValueError when they cannot."""
    x, y = a._d, b._d
    if x is None or y is None:
        return TensorShape(None)
    turned = len(x) < len(y)
    if turned:
        x, y = y, x
    out = list(x)
    shift = len(x) - len(y)
    for i, d in enumerate(y):
        e = x[shift + i]
        if d == 1 or d == e:
            continue
        if e == 1:
            out[shift + i] = d
        elif e is None or d is None:
            # An unknown dimension against a number above 1 must end up as that number; TensorFlow does not say so of 0.
            out[shift + i] = (d if e is None else e) or None
        else:
            e, d = (d, e) if turned else (e, d)
            raise ValueError(f"Dimensions must be equal, but are {e} and {d}")
    return TensorShape._of(tuple(out))
