"""`tf.debugging.assert_shapes`: relations between the shapes of several tensors."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.array.checks import Assert, assert_rank, assert_rank_at_least, assert_rank_in
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.math.compare import equal
from tensorfleet.ops.math.reduce_functions import reduce_prod


@export("debugging.assert_shapes")
def assert_shapes(
    shapes: Any,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """An operation that fails unless tensors have the shapes asked for.

    `shapes` pairs tensors with sizes: numbers, names such as "N" that mean the same size wherever they occur,
    None (or ".") for any size, and first `...` (or "*") for any dimensions before the others. A text such as
    "N3." tells one size with each letter; None instead of sizes allows any shape.
    """
    pairs = list(shapes.items()) if isinstance(shapes, dict) else list(shapes)
    said = "" if message is None else f"{message}.  "
    with name_scope(name, "assert_shapes", None):
        asked = [_Asked(to_tensor(t), spec, said) for t, spec in pairs if spec is not None]
        checks: list[Operation] = [each.check_rank(data, summarize) for each in asked]
        known: dict[str, tuple[Any, str]] = {}
        for each in asked:
            checks += each.check_sizes(known, data, summarize)
    return group(*checks)


class _Asked:
    """A tensor with the sizes asked for; of all its last dimensions if `outer`, else of all."""

    def __init__(self, tensor: Tensor, spec: Any, said: str) -> None:
        self.tensor = tensor
        self.said = said
        if not hasattr(spec, "__iter__") and not hasattr(spec, "__getitem__"):
            raise ValueError(
                f"{said}Tensor {tensor.name}.  Specified shape must be an iterable.  An iterable has the attribute "
                f"`__iter__` or `__getitem__`.  Received specified shape: {spec}"
            )
        sizes = [_size(s) for s in spec]
        self.outer = sizes[:1] == [...]
        self.sizes = sizes[1:] if self.outer else sizes or [1]  # a scalar is as good as one number
        if ... in self.sizes:
            raise ValueError(
                f"{said}Tensor {tensor.name} specified shape index {sizes.index(..., 1)}.  Symbol `...` or `*` for a "
                "variable number of unspecified dimensions is only allowed as the first entry"
            )

    def check_rank(self, data: Sequence[TensorLike] | None, summarize: int | None) -> Operation:
        """What fails when the tensor has another rank; ValueError when that is known."""
        count, rank = len(self.sizes), self.tensor.shape.rank
        flexible = count == 1 and not self.outer
        fits = rank is None or (rank >= count if self.outer else rank == count or (flexible and rank == 0))
        if not fits:
            wanted = (
                f"greater than or equal {count}" if self.outer else "in (0, 1)" if flexible else f"{count}"
            )
            raise ValueError(
                f"{self.said}Tensor {self.tensor.name} must have rank {wanted}.  Received rank {rank}, shape "
                f"{self.tensor.shape}"
            )
        if self.outer:
            return assert_rank_at_least(self.tensor, count, data=data, summarize=summarize)
        if flexible:
            return assert_rank_in(self.tensor, (0, 1), data=data, summarize=summarize)
        return assert_rank(self.tensor, count, data=data, summarize=summarize)

    def check_sizes(
        self, known: dict[str, tuple[Any, str]], data: Sequence[TensorLike] | None, summarize: int | None
    ) -> list[Operation]:
        """What fails when a size is another; ValueError when that is known. Names get the first size they meet."""
        checks: list[Operation] = []
        for place, wanted in enumerate(self.sizes):
            axis = place - len(self.sizes) if self.outer else place
            if wanted is None:
                continue
            source, have = "Specified explicitly", self._have(axis)
            if isinstance(wanted, str):
                if wanted not in known:
                    known[wanted] = (have, f"Specified by tensor {self.tensor.name} dimension {axis}")
                    continue
                wanted, source = known[wanted]
            if not isinstance(have, Tensor) and not isinstance(wanted, Tensor):
                if have != wanted:
                    raise ValueError(
                        f"{self.said}{source}.  Tensor {self.tensor.name} dimension {axis} must have size {wanted}.  "
                        f"Received size {have}, shape {self.tensor.shape}"
                    )
                continue
            message = [
                f"{self.said}{source}",
                f"Tensor {self.tensor.name} dimension",
                axis,
                "must have size",
                wanted,
            ]
            message += ["Received shape: ", shape_of(self.tensor)]
            checks.append(Assert(equal(have, wanted), data or message, summarize=summarize))
        return checks

    def _have(self, axis: int) -> Any:
        """The size of a dimension: a number if it is known, else a tensor. A scalar has size 1."""
        static = self.tensor.shape
        if static.rank == 0:
            return 1
        if static.rank is not None and static.as_list()[axis] is not None:
            return static.as_list()[axis]
        if static.rank is None and len(self.sizes) == 1 and not self.outer:
            return reduce_prod(shape_of(self.tensor))
        return shape_of(self.tensor)[axis]


def _size(asked: Any) -> EllipsisType | int | str | None:
    """A number, a name, None for any size, or `...` for any dimensions."""
    if asked is None or asked is ...:
        return asked
    if not isinstance(asked, str):
        return int(asked)
    return {".": None, "*": ...}.get(asked, int(asked) if asked.isdigit() else asked)
