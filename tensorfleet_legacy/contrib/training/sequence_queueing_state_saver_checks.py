"""Checks of a sequence's tensors before it is cut into segments: when the graph is built, and in each step."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import errors
from tensorfleet.base.naming import find
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies


def text_of(*parts: Any) -> Tensor:
    """Words and tensors joined, for the message of an error: a text for each element of the tensors."""
    texts = [p if isinstance(p, str) else find("as_string")(p) for p in parts]
    return find("string_join")(texts)


def assured(tensor: Tensor, checks: list, name: str | None = None) -> Tensor:
    """The tensor, which can only be had when (condition, message) of all checks hold."""
    with control_dependencies([find("Assert")(condition, message) for condition, message in checks]):
        return find("identity")(tensor, name=name)


def multiple_of(size: Tensor, unit: int, label: str) -> tuple[Tensor, list]:
    """The check that a size is a multiple of `unit`, and not zero. What is known not to be is refused at once."""
    known = constant_value(size)
    if known is not None and (known == 0 or known % unit):
        raise errors.invalid(
            f"{label} should be a multiple of: {unit}, but saw value: {known}. Consider setting pad=True."
        )
    whole = find("logical_and")(find("equal")(size % unit, 0), find("not_equal")(size, 0))
    words = f"{label} should be a multiple of: "
    return whole, [text_of(words, unit, ", but saw value: ", size, ". Consider setting pad=True.")]


def with_rank(tensor: Tensor, rank: Any) -> Tensor:
    """The tensor, known to be of a rank."""
    message = [
        text_of(f"Rank of tensor {tensor.name} should be: ", rank, ", shape received:"),
        find("shape")(tensor),
    ]
    result = assured(tensor, [(find("equal")(rank, find("rank")(tensor)), message)], "rank_checked")
    known = constant_value(rank) if isinstance(rank, Tensor) else rank
    if known is not None:
        try:
            result.set_shape(result.shape.with_rank(int(known)))
        except ValueError as e:
            raise ValueError(f"Rank check failed for {tensor.name}: {e}") from e
    return result


def with_shape(tensor: Tensor, shape: Tensor) -> Tensor:
    """The tensor, known to be of the shape that another tensor says."""
    known = constant_value(shape)
    dims: Any = shape if known is None else [int(d) for d in known]
    # A part of the shape may be known before the graph runs: the rank nearly always is.
    tensor = with_rank(tensor, find("size")(shape) if known is None else len(dims))
    size = find("shape")(tensor)
    message = [text_of(f"Shape of tensor {tensor.name} should be: ", shape, ", shape received: ", size)]
    same = find("reduce_all")(find("equal")(dims, size))
    result = assured(tensor, [(same, message)], "shape_checked")
    if known is not None:
        try:
            result.set_shape(result.shape.merge_with(dims))
        except ValueError as e:
            raise ValueError(f"Shape check failed for {tensor.name}: {e}") from e
    return result


def with_length(tensor: Tensor, length: Tensor, label: str) -> Tensor:
    """The tensor, known to be of a length along its first axis."""
    if tensor.shape.rank == 0:
        raise ValueError(f"{label}: rank of input is not greater than max(dimensions): 0 vs. 0")
    size = find("shape")(tensor)
    words = f"Dimension 0 of tensor labeled {label} should be: "
    message = [text_of(words, length, ", shape received: ", size)]
    return assured(tensor, [(find("equal")(length, size[0]), message)], f"dims_checked_{label}")
