"""Tables from keys to values, kept by the session: the operations on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.files import whole_file
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext, Kernel
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR, UNKNOWN
from tensorfleet.ops.state.queue_ops import handle_shape
from tensorfleet.state.tables import DenseTable, MutableTable, StaticTable, Table, invalid

# TensorFlow's numbers for a key or value that is not a column.
WHOLE_LINE = -2
LINE_NUMBER = -1


# -- making them -------------------------------------------------------------------------------------

_SHARING = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; "
_TYPES = "key_dtype: type; value_dtype: type"


def _kept(ctx: HostContext, make: Callable[[], Table], op: Operation) -> Table:
    attrs = op._attrs
    name = attrs["shared_name"].decode() or ctx.op.name
    table: Table = ctx.resources.get(attrs["container"].decode(), "table", name, make)
    if (table.key_dtype, table.value_dtype) != (attrs["key_dtype"], attrs["value_dtype"]):
        raise invalid(
            f"Conflicting key/value dtypes {attrs['key_dtype'].name}->{attrs['value_dtype'].name} with "
            f"{table.key_dtype.name}-{table.value_dtype.name} for table {name}"
        )
    return table


# Tables were references to strings before they were resources; graphs of that time are still around.
_HANDLES = {"": "Ref(string)", "V2": "resource"}


def _table_op(
    name: str, more: str = "", inputs: str = "", versions: tuple[str, ...] = ("", "V2")
) -> Callable[[Kernel], Kernel]:
    """Registers an op that makes a table, for each kind of handle."""

    def register(kernel: Kernel) -> Kernel:
        for version in versions:
            op(
                name + version,
                f"{inputs}-> table_handle: {_HANDLES[version]}",
                _SHARING + _TYPES + more,
                shape=handle_shape,
                host=True,
                stateful=True,
            )(kernel)
            not_differentiable(name + version)
        return kernel

    return register


def _on_table(name: str, signature: str, attrs: str = "", **flags: Any) -> Callable[[Kernel], Kernel]:
    """Registers an op that uses a table, for each kind of handle."""

    def register(kernel: Kernel) -> Kernel:
        for version, handle in _HANDLES.items():
            op(
                f"{name}{version}",
                f"table_handle: {handle}{signature}",
                attrs,
                host=True,
                stateful=True,
                **flags,
            )(kernel)
            not_differentiable(f"{name}{version}")
        return kernel

    return register


@_table_op("HashTable")
def _hash_table(ctx: HostContext, *, key_dtype: DType, value_dtype: DType, op: Operation) -> Table:
    return _kept(ctx, lambda: StaticTable(key_dtype, value_dtype), op)


@_table_op("MutableHashTable")
def _mutable_table(ctx: HostContext, *, key_dtype: DType, value_dtype: DType, op: Operation) -> Table:
    return _kept(ctx, lambda: MutableTable(key_dtype, value_dtype), op)


@_table_op("MutableHashTableOfTensors", "; value_shape: shape = ()")
def _table_of_rows(
    ctx: HostContext, *, key_dtype: DType, value_dtype: DType, value_shape: TensorShape, op: Operation
) -> Table:
    shape = tuple(value_shape.as_list())
    return _kept(ctx, lambda: MutableTable(key_dtype, value_dtype, shape), op)


@_table_op(
    "MutableDenseHashTable",
    "; value_shape: shape = (); initial_num_buckets: int = 131072; max_load_factor: float = 0.8",
    "empty_key: key_dtype[1-], deleted_key: key_dtype[1-] ",
    ("V2",),
)
def _dense_table(
    ctx: HostContext,
    empty_key: Array,
    deleted_key: Array,
    *,
    key_dtype: DType,
    value_dtype: DType,
    value_shape: TensorShape,
    initial_num_buckets: int,
    max_load_factor: float,
    op: Operation,
) -> Table:
    def make() -> DenseTable:
        return DenseTable(
            key_dtype,
            value_dtype,
            tuple(value_shape.as_list()),
            np.shape(empty_key),
            empty_key=empty_key,
            deleted_key=deleted_key,
            buckets=initial_num_buckets,
            load=max_load_factor,
        )

    return _kept(ctx, make, op)


# -- using them --------------------------------------------------------------------------------------


def _found_shape(op: Operation) -> TensorShape:
    keys, default = op._inputs[1].shape, op._inputs[2].shape
    maker = op._inputs[0].op
    if maker.type == "MutableDenseHashTableV2":
        rank = maker._inputs[0].shape.rank
        if keys.rank is None or rank is None:
            return UNKNOWN
        keys = TensorShape(keys.as_list()[: keys.rank - rank])
    return keys.concatenate(default) if default.rank is not None else UNKNOWN


@_on_table(
    "LookupTableFind",
    ", keys: Tin, default_value: Tout -> values: Tout",
    "Tin: type; Tout: type",
    shape=_found_shape,
    packed=True,
)
def _find(ctx: HostContext, table: Table, keys: Array, default: Array) -> Array:
    table.check_types(keys, default)
    if np.shape(default) != table.value_shape:
        raise invalid(
            f"Expected shape {list(table.value_shape)} for default value, got {list(np.shape(default))}"
        )
    return table.find(keys, default)


@_on_table("LookupTableInsert", ", keys: Tin, values: Tout ->", "Tin: type; Tout: type")
def _insert(ctx: HostContext, table: MutableTable | StaticTable, keys: Array, values: Array) -> None:
    table.check_types(keys, values)
    table.insert(keys, values)


@op("LookupTableRemoveV2", "table_handle: resource, keys: Tin ->", "Tin: type", host=True, stateful=True)
def _remove(ctx: HostContext, table: Table, keys: Array) -> None:
    table.check_types(keys)
    table.remove(keys)


@_on_table("LookupTableSize", " -> size: int64", shape=lambda op: SCALAR)
def _size(ctx: HostContext, table: Table) -> np.int64:
    return np.int64(table.size())


@_on_table(
    "LookupTableExport",
    " -> keys: Tkeys, values: Tvalues",
    "Tkeys: type; Tvalues: type",
    shape=lambda op: [UNKNOWN, UNKNOWN],
)
def _export(ctx: HostContext, table: Table) -> tuple[Array, Array]:
    return table.export()


def _as_many(op: Operation) -> list[TensorShape]:
    keys, values = op._inputs[1].shape, op._inputs[2].shape
    if keys.rank == 1 and values.rank:
        a, b = keys.as_list()[0], values.as_list()[0]
        if None not in (a, b) and a != b:
            raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
    return []


@_on_table("LookupTableImport", ", keys: Tin, values: Tout ->", "Tin: type; Tout: type", shape=_as_many)
def _import(ctx: HostContext, table: MutableTable | StaticTable, keys: Array, values: Array) -> None:
    table.check_types(keys, values)
    if isinstance(table, StaticTable) and not np.size(keys):
        raise errors.invalid("keys and values cannot be empty tensors.")
    table.replace(keys, values)


_on_table("InitializeTable", ", keys: Tkey, values: Tval ->", "Tkey: type; Tval: type", shape=_as_many)(
    _import
)


def _one_file(op: Operation) -> list[TensorShape]:
    op._inputs[1].shape.with_rank(0)
    return []


@_on_table(
    "InitializeTableFromTextFile",
    ", filename: string ->",
    "key_index: int; value_index: int; vocab_size: int = -1; delimiter: string = '\t'; offset: int = 0",
    shape=_one_file,
)
def _from_file(
    ctx: HostContext,
    table: StaticTable,
    filename: Array,
    *,
    key_index: int,
    value_index: int,
    vocab_size: int,
    delimiter: bytes,
    offset: int,
) -> None:
    name = np.asarray(filename, object).item().decode()
    lines = _lines(name, vocab_size)
    columns = (key_index, table.key_dtype), (value_index, table.value_dtype)

    def pairs() -> Iterator[tuple[Any, Any]]:
        for number, line in enumerate(lines):
            key, value = (_field(name, line, number, i, t, delimiter, offset) for i, t in columns)
            yield key, value

    table.fill(pairs())


def _lines(name: str, count: int) -> list[bytes]:
    lines = whole_file(name).split(b"\n")
    if not lines[-1]:
        lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    if count < 0:
        return lines
    if len(lines) < count:
        raise invalid(f"Invalid vocab_size in {name}: expected {count} but got {len(lines)}")
    return lines[:count]


def _field(
    name: str, line: bytes, number: int, index: int, dtype: DType, delimiter: bytes, offset: int
) -> bytes | float:
    """A column of a line, the whole of it, or its number."""
    if index == LINE_NUMBER:
        return number + offset
    if index == WHOLE_LINE:
        text = line
    else:
        columns = line.split(delimiter)
        if index >= len(columns):
            raise invalid(
                f"Invalid number of columns in {name} line {number} ({line.decode(errors='replace')}) : expected at "
                f"least {index + 1} got {len(columns)}"
            )
        text = columns[index]
    if dtype == dtypes.string:
        return text
    try:
        return int(text) if dtype.is_integer else dtype.np_dtype.type(float(text)).item()
    except ValueError:
        kind = {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name)
        raise invalid(
            f"Field {text.decode(errors='replace')} in line {number} is not a valid {kind}."
        ) from None
