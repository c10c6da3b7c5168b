"""What the shape functions of neural-network ops share."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.shapes import TensorShape, unknown_shape
from tensorfleet.base.types import TensorLike


def of_rank(shape: TensorShape, rank: int) -> TensorShape:
    """The shape, known to have that rank; ValueError when it has another."""
    if shape.rank not in (None, rank):
        raise ValueError(f"Shape must be rank {rank} but is rank {shape.rank}")
    return unknown_shape(rank) if shape.rank is None else shape


def of_rank_at_least(shape: TensorShape, rank: int) -> TensorShape:
    """The shape; ValueError when its rank is known to be lower."""
    if shape.rank is not None and shape.rank < rank:
        raise ValueError(f"Shape must be at least rank {rank} but is rank {shape.rank}")
    return shape


def same_dimension(a: int | None, b: int | None) -> int | None:
    """What is known of two dimensions that must be equal."""
    if a is not None and b is not None and a != b:
        raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
    return b if a is None else a


def shape_of(dims: tuple[int | None, ...]) -> TensorShape:
    """A TensorShape of ints and Nones, or of None."""
    return TensorShape(None) if dims is None else TensorShape._of(tuple(dims))


def dims_of(shape: TensorShape) -> tuple[int | None, ...] | None:
    """The ints and Nones of a TensorShape, or None when its rank is unknown."""
    return shape._d


def spatial_list(value: Any, count: int, channels_first: bool, name: str) -> list[int]:
    """Strides, dilations or a window as one number per axis, from one, one per spatial axis, or all."""
    given = [1] if value is None else list(value) if hasattr(value, "__len__") else [value]
    if len(given) == count + 2:
        return given
    if len(given) == 1:
        given = given * count
    elif len(given) != count:
        raise ValueError(f"{name} should be of length 1, {count} or {count + 2} but was {len(given)}")
    return [1, 1, *given] if channels_first else [1, *given, 1]


def one_of(name: str, value: TensorLike, old_name: str, old: TensorLike) -> Any:
    """The value given under either of an argument's two names."""
    if old is None:
        return value
    if value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{name}'")
    return old
