"""Looking rows up in tables that may be cut into parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, apply_list, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import colocate_with, name_scope
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.shape import shape, size
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.math.clip import clip_by_norm
from tensorfleet.ops.ragged.functions import map_flat_values


def listed(params: Any) -> list[Any]:
    """The parts of a partitioned variable, the items of a list, or the one thing that there is."""
    several = isinstance(params, (list, tuple)) or hasattr(params, "_get_variable_list")
    return list(params) if several else [params]


def parts_of(params: TensorLike) -> list[Any]:
    """A table as the list of its parts."""
    if params is None:
        raise ValueError("params must be specified")
    parts = listed(params)
    if not parts:
        raise ValueError("Need at least one param")
    return parts


@export("nn.embedding_lookup")
def embedding_lookup(
    params: TensorLike,
    ids: TensorLike,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: TensorLike = None,
) -> Tensor:
    """The rows of a table at `ids`; its gradient touches only these rows.

    `params` is a tensor, a variable, a partitioned variable or a list of parts. Row i of a table in n parts
    is row i // n of part i % n ("mod"), or the parts hold consecutive rows ("div"). With `max_norm`, longer
    rows are scaled down to that length. Ragged ids give ragged rows.
    """
    if hasattr(ids, "flat_values"):
        result: Tensor = map_flat_values(
            lambda flat: embedding_lookup(params, flat, partition_strategy, name, validate_indices, max_norm),
            ids,
        )
        return result
    return lookup_and_transform(params, ids, partition_strategy, name, max_norm)


@export("python.ops.embedding_ops._embedding_lookup_and_transform")
def lookup_and_transform(
    params: TensorLike,
    ids: TensorLike,
    partition_strategy: str = "mod",
    name: str | None = None,
    max_norm: TensorLike = None,
    transform_fn: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """`embedding_lookup`, and then a function of the rows, one vector of ids at a time, where each part is."""
    parts = parts_of(params)
    with name_scope(name, "embedding_lookup", [*parts, ids]) as scope:
        tables = [_table(p, i, len(parts)) for i, p in enumerate(parts)]
        rows = to_tensor(ids, name="ids")
        if len(tables) == 1 and (transform_fn is None or rows.shape.rank == 1):
            with colocate_with(_element(tables[0])):
                rows_taken = _clipped(gather(tables[0], rows, name=scope), rows, max_norm)
                return apply("Identity", transform_fn(rows_taken) if transform_fn else rows_taken)
        if transform_fn is None:
            return _clipped(_from_parts(tables, rows, partition_strategy, scope), rows, max_norm)

        def transformed(found: Tensor, taken: Tensor) -> Tensor:
            return transform_fn(_clipped(found, taken, max_norm))

        return _from_parts(tables, rows, partition_strategy, scope, transformed)


def _table(part: Any, position: int, count: int) -> Any:
    """A part as it is gathered from: resource variables are read by rows, the rest are tensors."""
    # Converting a resource variable would read all of it.
    if getattr(part, "handle", None) is not None:
        return part
    return to_tensor(part, name=f"params_{position}" if count > 1 else "params_0")


def _element(table: Any) -> Tensor:
    return table if isinstance(table, Tensor) else table.handle


def _clipped(rows: Tensor, ids: Tensor, max_norm: TensorLike) -> Tensor:
    if max_norm is None:
        return rows
    if ids.shape.rank is None or rows.shape.rank is None:
        raise ValueError("max_norm needs ids and params of known rank.")
    result: Tensor = clip_by_norm(rows, max_norm, axes=list(range(ids.shape.rank, rows.shape.rank)))
    return result


def _from_parts(
    tables: list[Any],
    ids: Tensor,
    strategy: str,
    name: str,
    transform: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    count = len(tables)
    flat = apply("Reshape", ids, [-1])
    positions = apply("Range", 0, size(flat), 1, name="range")
    if strategy == "mod":
        part, row = flat % count, flat // count
    elif strategy == "div":
        part, row = _consecutive(tables, flat)
    else:
        raise ValueError(f"Unrecognized partition strategy: {strategy}. Use 'mod' or 'div'.")
    part = cast(part, "int32")
    # Each part is gathered where it is, and only rows travel.
    rows_of = apply_list("DynamicPartition", row, part, num_partitions=count)
    places = apply_list("DynamicPartition", positions, part, num_partitions=count)
    results = []
    for table, rows in zip(tables, rows_of, strict=True):
        with colocate_with(_element(table)):
            taken = gather(table, rows)
            results.append(transform(taken, rows) if transform else taken)
    joined = apply("ParallelDynamicStitch", places, results, name=name)
    element = TensorShape(None)
    for piece in results if transform else tables:
        element = element.merge_with(piece.shape[1:])
    of = joined if transform else tables[0]
    inner = np.array(element.as_list(), np.int32) if element.is_fully_defined() else shape(of)[1:]
    result = apply("Reshape", joined, apply("ConcatV2", [shape(ids), inner], 0, name="concat"))
    result.set_shape(ids.shape.concatenate(element))
    return result


def _consecutive(tables: list[Any], flat: Tensor) -> tuple[Tensor, Tensor]:
    """(part, row inside it) of each id when parts hold consecutive rows, the first ones one more."""
    count, kind = len(tables), flat.dtype.base_dtype
    sizes = [None if t.shape.rank is None else t.shape.as_list()[0] for t in tables]
    if None not in sizes:
        total = constant(np.array(sum(s for s in sizes if s is not None)), kind)
    else:
        total = apply(
            "Sum", cast(apply("Pack", [shape(t)[0] for t in tables]), kind), np.array([0], np.int32)
        )
    each, extra = total // count, total % count
    one_more = each + 1
    # in the parts of one row more, and in the others
    longer = flat // one_more
    shifted = flat - extra
    # The first parts have one row more. Each formula is right for its own parts and too small for the others.
    part = apply("Maximum", longer, shifted // each)
    return part, apply("Select", part < extra, flat % (each + 1), (flat - extra) % each)
