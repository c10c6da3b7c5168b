"""Tables of rows by 64-bit keys on parameter servers: `tf.fleet.Table` uses these ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.exported_functions import ExportedFunction
from tensorfleet.ops.common import SCALAR, UNKNOWN
from tensorfleet.ops.control.jax_call import ATTRS, exported_of
from tensorfleet.ops.state.queue_ops import handle_shape
from tensorfleet.state.keyed_rows import KeyedRows, RowKind, digest_of

#: The results of an op that may be asked for keys by their digest alone: the last says whether it knew them.
_Found: TypeAlias = "tuple[Array, np.bool_]"

_NO_ROWS = np.zeros((0, 0))
_SMALLEST_CALL = 16  # rows; smaller calls are padded to it


@op(
    "FleetKeyedRows",
    "-> table: resource",
    "shared_name: string; dim: int; dtype: type; merge: string; initial: string; container: string = ''",
    shape=handle_shape,
    host=True,
    stateful=True,
)
def _keyed_rows(
    ctx: HostContext,
    *,
    shared_name: bytes,
    dim: int,
    dtype: DType,
    merge: bytes,
    initial: bytes,
    container: bytes,
) -> KeyedRows:
    name = shared_name.decode()
    wanted = RowKind(name, dim, np.dtype(dtype.as_numpy_dtype).name, merge.decode(), bytes(initial))
    table = ctx.resources.get(container.decode(), "keyed rows", name, lambda: KeyedRows(wanted))
    if table.kind != wanted:
        raise errors.invalid(
            f"Table '{name}' is on the servers already, with {wanted.differences(table)}. Ask for it with the same "
            "arguments everywhere, or give one of the two another name."
        )
    return table


@op("FleetKeyedSize", "table: resource -> size: int64", shape=lambda op: SCALAR, host=True, stateful=True)
def _size(ctx: HostContext, table: KeyedRows) -> Array:
    return np.array(table.size(), np.int64)


# -- requests by keys --------------------------------------------------------------------------------


def _named(table: KeyedRows, keys: Array, digest: Array) -> Array | None:
    """The keys of a request: those that came along, or those that came once with this digest; None if unknown."""
    if not digest.size:
        return keys
    if not keys.size:
        return table.remembered(digest.tobytes())
    if digest.tobytes() != digest_of(keys):
        raise errors.invalid("The digest of the keys is another one than that of the keys sent with it.")
    table.remember(keys)
    return keys


@op(
    "FleetKeyedPull",
    "table: resource, keys: int64[1], digest: int64[1] -> rows: dtype, known: bool",
    "dtype: type",
    shape=lambda op: [UNKNOWN, SCALAR],
    host=True,
    stateful=True,
)
def _pull(ctx: HostContext, table: KeyedRows, keys: Array, digest: Array, *, dtype: DType) -> _Found:
    named = _named(table, keys, digest)
    if named is None:
        return _NO_ROWS.astype(dtype.as_numpy_dtype), np.False_
    return table.pull(named), np.True_


@op(
    "FleetKeyedPush",
    "table: resource, keys: int64[1], digest: int64[1], values: T, scales: float -> known: bool",
    "T: type",
    shape=lambda op: SCALAR,
    host=True,
    stateful=True,
)
def _push(
    ctx: HostContext, table: KeyedRows, keys: Array, digest: Array, values: Array, scales: Array
) -> np.bool_:
    named = _named(table, keys, digest)
    if named is None:
        return np.False_
    table.push(named, _values(table, named, values, scales), table.kind.merge)
    return np.True_


def _values(table: KeyedRows, keys: Array, values: Array, scales: Array) -> Array:
    """The values of a request in the table's type; small numbers come with a scale for each row."""
    wanted = (len(keys), table.kind.dim)
    if values.shape != wanted:
        raise errors.invalid(
            f"Values pushed to table '{table.kind.name}' have shape {list(values.shape)}, not {list(wanted)}: one row "
            "for each key."
        )
    full = values.astype(table.kind.dtype, copy=False)
    if scales.size:
        full = full * scales.reshape(-1, 1).astype(table.kind.dtype, copy=False)
    return full


@op(
    "FleetKeyedRange",
    "table: resource, first: int64[0], last: int64[0] -> keys: int64, rows: dtype",
    "dtype: type",
    shape=lambda op: [UNKNOWN, UNKNOWN],
    host=True,
    stateful=True,
)
def _range(ctx: HostContext, table: KeyedRows, first: Array, last: Array) -> tuple[Array, Array]:
    return table.pull_range(int(first), int(last))


# -- functions that run on the server ----------------------------------------------------------------


@op(
    "FleetKeyedMerge",
    "table: resource, keys: int64[1], values: T ->",
    f"{ATTRS}; T: type",
    host=True,
    stateful=True,
)
def _merge(ctx: HostContext, table: KeyedRows, keys: Array, values: Array) -> None:
    function = exported_of(ctx.op)
    if len(keys):
        full = _values(table, keys, values, np.zeros(0, np.float32))
        table.push(keys, full, lambda rows, pushed: call_on_rows(function, rows, [pushed])[0])


def _result_shapes(op: Operation) -> list[TensorShape]:
    return [UNKNOWN] * len(op._attrs["Tresults"])


@op(
    "FleetKeyedRun",
    "table: resource, keys: int64[1], rest: list(Trest) -> results: list(Tresults)",
    f"{ATTRS}; Trest: list(type) >= 0; Tresults: list(type) >= 0",
    shape=_result_shapes,
    host=True,
    stateful=True,
)
def _run(ctx: HostContext, table: KeyedRows, keys: Array, rest: list[Array]) -> tuple[Array, ...]:
    function = exported_of(ctx.op)
    return tuple(table.run(keys, lambda rows: call_on_rows(function, rows, rest)))


def call_on_rows(function: ExportedFunction, rows: Array, rest: Sequence[Array]) -> list[Array]:
    """Calls a function of rows; the number of rows is padded to a power of two, so that few programs are compiled.

    Arguments whose first size is that of the rows are padded by their last row.
    """
    count = len(rows)
    if not count:
        return [np.zeros(_no_rows(r.dims()), r.dtype) for r in function.results]
    size = max(_SMALLEST_CALL, 1 << (count - 1).bit_length())
    padded = [
        _padded(np.asarray(value), size - count) if kind.dims()[:1] == ["b"] else value
        for kind, value in zip(function.arguments, [rows, *rest], strict=True)
    ]
    results = function.call_now(*padded)
    return [
        result[:count] if kind.dims()[:1] == ["b"] else result
        for kind, result in zip(function.results, results, strict=True)
    ]


def _padded(value: Array, more: int) -> Array:
    return np.concatenate([value, np.repeat(value[-1:], more, axis=0)]) if more else value


def _no_rows(dims: Sequence[str]) -> list[int]:
    return [int(d) if d.isdigit() else 0 for d in dims]


not_differentiable(
    "FleetKeyedRows",
    "FleetKeyedSize",
    "FleetKeyedPull",
    "FleetKeyedPush",
    "FleetKeyedRange",
    "FleetKeyedMerge",
    "FleetKeyedRun",
)
