"""Elements for the queues of `tf.train.batch` and its relatives: checked, sparse tensors by number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import ShapeLike, TensorLike
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tensorfleet.ops.array.basic import with_dependencies
from tensorfleet.ops.array.constructors import ones
from tensorfleet.ops.array.shape import expand_dims, squeeze
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.sparse.tensors_map import (
    add_many_sparse_to_tensors_map,
    add_sparse_to_tensors_map,
    take_many_sparse_from_tensors_map,
)

#: The argument of one enqueue operation: tensors in a list, or by name.
Element: TypeAlias = "Sequence[TensorLike] | Mapping[Any, TensorLike]"

# -- before the queue --------------------------------------------------------------------------------


@export("python.training.input._as_tensor_list")
def as_list(tensors: Element) -> list[Any]:
    """The tensors of one element; those of a dictionary in the order of its keys."""
    return [tensors[k] for k in sorted(tensors, key=str)] if isinstance(tensors, dict) else list(tensors)


def as_lists(tensors_list: Sequence[Element]) -> list[list[Any]]:
    """The element of each enqueue operation as a list of its tensors."""
    if not tensors_list:
        raise ValueError("Expected at least one set of tensors")
    first = tensors_list[0]
    if isinstance(first, dict):
        for other in tensors_list[1:]:
            if set(other) != set(first):
                raise ValueError("All dictionaries must have the same keys")
    return [as_list(tensors) for tensors in tensors_list]


def as_given(tensors: Element, taken: Any) -> Any:
    """A batch in the structure of the elements: a dictionary for dictionaries."""
    if isinstance(tensors, dict):
        several = taken if len(tensors) > 1 else [taken]
        return {k: several[i] for i, k in enumerate(sorted(tensors, key=str))}
    return taken


@export("python.training.input._as_original_type")
def as_original_type(original_tensors: Element, tensor_list: list[Any]) -> Any:
    """A list of tensors in the structure of an element."""
    if isinstance(original_tensors, dict):
        return dict(zip(sorted(original_tensors, key=str), tensor_list, strict=True))
    return tensor_list


def _converted(tensors: Sequence[Any]) -> list[Tensor | SparseTensor]:
    if not tensors:
        raise ValueError("Expected at least one tensor in batch().")
    return [convert_to_tensor_or_sparse_tensor(t) for t in tensors]


def _keep_tensor(keep_input: TensorLike, enqueue_many: bool) -> Tensor:
    keep = to_tensor(keep_input)
    if keep.shape.rank is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if not enqueue_many and keep.shape.rank == 1:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if keep.shape.rank > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return keep


def _types(elements: list[list[Tensor]]) -> list[DType]:
    first, *others = [[t.dtype.base_dtype for t in element] for element in elements]
    for other in others:
        if other != first:
            names = [", ".join(t.name for t in kinds) for kinds in (first, other)]
            raise TypeError(f"Expected types to be consistent: {names[0]} vs. {names[1]}.")
    return first


def _shapes(
    elements: list[list[Tensor]], shapes: Sequence[ShapeLike] | None, enqueue_many: bool
) -> Sequence[ShapeLike]:
    if shapes is not None:
        return shapes
    for element in elements:
        for t in element:
            if t.shape.rank is None:
                raise ValueError(f"Cannot infer Tensor's rank: {t}")
    return [_common_shape([t.shape for t in same], enqueue_many) for same in zip(*elements, strict=False)]


def _common_shape(shapes: list[TensorShape], enqueue_many: bool) -> TensorShape:
    if enqueue_many:
        shapes = [s.with_rank_at_least(1)[1:] for s in shapes]
    for other in shapes[1:]:
        shapes[0].merge_with(other)  # they must agree; the first says which sizes may differ
    return shapes[0]


# -- sparse tensors ----------------------------------------------------------------------------------


class _Sparse(NamedTuple):
    """How a sparse tensor travels through the queue: as the number under which an operation keeps it."""

    keeper: Operation
    rank: int | None


def choose(keep: Tensor, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """The result of `yes` or `no`; chosen now if `keep` is known, else in each run."""
    known = constant_value(keep)
    if known is not None and np.ndim(known) == 0:
        return yes() if known else no()
    return cond(keep, yes, no)


def _stored(
    tensors: list[Tensor | SparseTensor],
    enqueue_many: bool,
    keep: Tensor,
    shared: list[_Sparse | None] | None = None,
) -> tuple[list[Tensor], list[_Sparse | None]]:
    """The tensors as they enter the queue: sparse ones by number."""
    stored: list[Tensor] = []
    infos: list[_Sparse | None] = []
    for i, t in enumerate(tensors):
        known = shared[i] if shared is not None else None
        if isinstance(t, SparseTensor):
            number, info = _store(t, enqueue_many, keep, known)
            stored.append(expand_dims(number, [-1]))
            infos.append(info)
        else:
            stored.append(t)
            infos.append(None)
    return stored, infos


def _store(t: SparseTensor, many: bool, keep: Tensor, known: _Sparse | None) -> tuple[Tensor, _Sparse]:
    keepers: list[Operation] = []
    name = known.keeper.name if known is not None else None
    add = add_many_sparse_to_tensors_map if many else add_sparse_to_tensors_map

    def yes() -> Tensor:
        number = add(t, shared_name=name)
        keepers.append(number.op)
        return number

    def no() -> Tensor:
        nothing = to_tensor(-1, dtypes.int64)
        return nothing * ones(shape_of(t)[0:1], dtypes.int64) if many else nothing

    # With a vector `keep` rows are chosen later: everything is stored.
    number = yes() if keep.shape.rank == 1 else choose(keep, yes, no)
    rank = t.dense_shape.shape.with_rank(1)[0].value
    if rank is not None and many:
        rank -= 1
    if known is None and not keepers:
        raise ValueError("Sparse tensors cannot be batched with `keep_input` constantly False.")
    return number, _Sparse(known.keeper if known is not None else keepers[0], rank)


def restored(taken: Any, infos: list[_Sparse | None]) -> Any:
    """The tensors out of the queue, with numbers turned back into the sparse tensors they stand for."""
    if not any(infos):
        return taken
    single = not isinstance(taken, list)
    tensors: list[Any] = []
    for t, info in zip([taken] if single else taken, infos, strict=True):
        if info is None:
            tensors.append(t)
        else:
            rank = None if info.rank is None else info.rank + 1
            tensors.append(take_many_sparse_from_tensors_map(info.keeper, squeeze(t, [1]), rank=rank))
    # Reading any of them takes all out of the session: numbers must not pile up there.
    gates = [t.values if isinstance(t, SparseTensor) else t for t in tensors]
    gated = [_after(gates, t) for t in tensors]
    # A single tensor is its own gate.
    return tensors[0] if single else gated


def _after(gates: list[Tensor], t: Tensor | SparseTensor) -> Tensor | SparseTensor:
    if isinstance(t, SparseTensor):
        parts = [with_dependencies(gates, part) for part in (t.indices, t.values, t.dense_shape)]
        return SparseTensor(*parts)
    gated: Tensor = with_dependencies(gates, t)
    return gated


class Elements:
    """The elements of all enqueue operations, ready for a queue."""

    def __init__(
        self,
        elements: list[list[Any]],
        keep_input: TensorLike,
        enqueue_many: bool,
        shapes: Sequence[ShapeLike] | None,
    ) -> None:
        self.many = enqueue_many
        converted = [_converted(element) for element in elements]
        self.keep = _keep_tensor(keep_input, enqueue_many)
        stored, self.infos = _stored(converted[0], enqueue_many, self.keep)
        self.lists = [stored]
        for element in converted[1:]:
            self.lists.append(_stored(element, enqueue_many, self.keep, self.infos)[0])
        self.types = _types([element[: len(stored)] for element in self.lists])
        self.shapes = _shapes(self.lists, shapes, enqueue_many)
