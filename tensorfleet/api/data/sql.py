"""`tf.data.experimental.SqlDataset`: the rows of a query."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data.blocks import Block, column_of, unboxed
from tensorfleet.api.data.dataset import Dataset
from tensorfleet.api.data.dataset_ops import dataset_op
from tensorfleet.api.data.nodes import DatasetRun, Node, StartNode
from tensorfleet.api.data.structure import ELEMENTS, Leaf, Nested, map_leaves
from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.errors import UnknownError, invalid
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.convert import to_tensor

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.host_ops import StepHostContext
    from tensorfleet.runtime.scheduling.step import ExecutionContext


class _Query(DatasetRun):
    """The rows of a query, read at once: no connection outlives a step."""

    place = ("_given",)

    def __init__(self, source: str, query: str, kinds: list[DType]) -> None:
        self._source, self._query, self._kinds = source, query, kinds
        self._rows: list[tuple[Any, ...]] | None = None
        self._given = 0

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next rows."""
        if self._rows is None:
            # Reversed, so that `pop` takes the next row from the end.
            self._rows = self._all()[self._given :][::-1]
        taken_rows = [self._rows.pop() for _ in range(min(n, len(self._rows)))]
        self._given += len(taken_rows)
        if not taken_rows:
            return None
        rows = [[_value(v, k) for v, k in zip(row, self._kinds, strict=True)] for row in taken_rows]
        return Block(len(rows), [column_of(c) for c in zip(*rows, strict=True)])

    def _all(self) -> list[tuple[Any, ...]]:
        import sqlite3

        try:
            with closing(sqlite3.connect(self._source)) as connection, connection:
                cursor = connection.execute(self._query)
                width = len(cursor.description or ())
                if width != len(self._kinds):
                    raise invalid(
                        f"The number of columns in query ({width}) must match the number of elements in output_types "
                        f"({len(self._kinds)})."
                    )
                return cursor.fetchall()
        except sqlite3.Error as e:
            raise UnknownError(None, None, f"The database could not run the query: {e}") from None


def _value(value: Any, kind: DType) -> Array | bytes:
    if kind == dtypes.string:
        return b"" if value is None else value if isinstance(value, bytes) else str(value).encode()
    return np.asarray(0 if value is None else value).astype(kind.np_dtype)[()]


@dataset_op(
    "SqlDataset", "driver_name: string, data_source_name: string, query: string", ELEMENTS, stateful=True
)
def _sql(
    ctx: StepHostContext, driver: Array, source: Array, query: Array, *, output_types: list[DType]
) -> Node:
    name, where, asked = (unboxed(v).decode() for v in (driver, source, query))
    if name != "sqlite":
        raise invalid(
            f"The database type, {name}, is not supported by SqlDataset. The set of supported databases is: {{'sqlite'}}."
        )
    return StartNode(lambda step: _Query(where, asked, output_types))


@export("data.experimental.SqlDataset", "contrib.data.SqlDataset")
class SqlDataset(Dataset):
    """The rows that a query of a database (`driver_name` is "sqlite") gives: a tuple of scalars each."""

    def __init__(
        self, driver_name: TensorLike, data_source_name: TensorLike, query: TensorLike, output_types: Nested
    ) -> None:
        structure = map_leaves(lambda t: Leaf(dtypes.as_dtype(t), TensorShape([])), output_types)
        names = "driver_name", "data_source_name", "query"
        given = (
            to_tensor(v, dtypes.string, name=n)
            for v, n in zip((driver_name, data_source_name, query), names, strict=True)
        )
        self._set("SqlDataset", structure, *given)
