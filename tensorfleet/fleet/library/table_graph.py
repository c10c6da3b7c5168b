"""The graph behind a table: one operation for each kind of request and server."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.types import Array
from tensorfleet.fleet.library.row_functions import RowFunction
from tensorfleet.graph.apply import apply, apply_list, apply_op
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import device
from tensorfleet.ops.array.basic import placeholder
from tensorfleet.ops.control.jax_call import function_attrs
from tensorfleet.state.keyed_rows import RowKind

if TYPE_CHECKING:
    from tensorfleet.fleet.library.join import Cluster

_MAX_REMEMBERED = 48  # sets of keys for each server, which keeps some more


class TableGraph:
    """Steps that make a request of every server at once."""

    def __init__(self, cluster: Cluster, kind: RowKind) -> None:
        self._cluster, self._kind = cluster, kind
        self._dtype = dtypes.as_dtype(kind.dtype)
        self._pushes: dict[np.dtype[Any], Callable[..., Any]] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self._remembered: list[dict[bytes, None]] = [{} for _ in cluster.servers]
        with cluster.building():
            self._tables = [self._table(server) for server in cluster.servers]

    def _table(self, server: str) -> Tensor:
        kind = self._kind
        with device(server):
            return apply(
                "FleetKeyedRows",
                shared_name=kind.name,
                dim=kind.dim,
                dtype=self._dtype,
                merge=kind.merge,
                initial=kind.initial,
            )

    def _each(self, make: Callable[[Tensor], tuple[list[Tensor], Any]]) -> tuple[list[Tensor], list[Any]]:
        """What `make` gives for the table on each server: what it is fed, and what is run."""
        feeds, fetches = [], []
        with self._cluster.building():
            for server, table in zip(self._cluster.servers, self._tables, strict=True):
                with device(server):
                    fed, fetched = make(table)
                feeds += fed
                fetches.append(fetched)
        return feeds, fetches

    # -- keys that servers remember -------------------------------------------------------------------

    def is_remembered(self, server: int, digest: Array) -> bool:
        """Whether a server was sent the keys with this digest lately."""
        return digest.tobytes() in self._remembered[server]

    def remember(self, server: int, digest: Array, knew: bool) -> None:
        """Notes that a server was sent keys, or that it has forgotten them."""
        known = self._remembered[server]
        known.pop(digest.tobytes(), None)
        if knew and digest.size:
            known[digest.tobytes()] = None
            if len(known) > _MAX_REMEMBERED:
                known.pop(next(iter(known)))

    # -- requests -------------------------------------------------------------------------------------

    @cached_property
    def _size(self) -> Callable[..., Any]:
        _, sizes = self._each(lambda table: ([], apply("FleetKeyedSize", table)))
        return self._cluster.step(sizes)

    def size(self) -> int:
        """How many rows all servers have."""
        return sum(int(size) for size in self._size())

    @cached_property
    def pull(self) -> Callable[..., Any]:
        """From keys and digest for each server to their rows, and whether the servers knew the keys."""

        def make(table: Tensor) -> tuple[list[Tensor], Any]:
            keys, digest = placeholder(dtypes.int64, [None]), placeholder(dtypes.int64, [None])
            return [keys, digest], apply_list("FleetKeyedPull", table, keys, digest, dtype=self._dtype)

        return self._separated(self._each(make))

    def _separated(self, made: tuple[list[Tensor], list[Any]]) -> Callable[..., Any]:
        feeds, pairs = made
        run = self._cluster.step([[rows for rows, _ in pairs], [known for _, known in pairs]], feeds)
        return run

    def push(self, dtype: np.dtype[Any]) -> Callable[..., Any]:
        """From keys, digest, values of this type and scales for each server to whether the servers knew the keys."""
        if dtype not in self._pushes:

            def make(table: Tensor) -> tuple[list[Tensor], Any]:
                keys, digest = placeholder(dtypes.int64, [None]), placeholder(dtypes.int64, [None])
                values = placeholder(dtypes.as_dtype(dtype), [None, self._kind.dim])
                scales = placeholder(dtypes.float32, [None])
                known = apply("FleetKeyedPush", table, keys, digest, values, scales)
                return [keys, digest, values, scales], known

            feeds, known = self._each(make)
            step = self._cluster.step(known, feeds)
            self._pushes[dtype] = lambda *values: ([], step(*values))
        return self._pushes[dtype]

    @cached_property
    def pull_range(self) -> Callable[..., Any]:
        """From the first key and the one after the last to keys and rows of each server."""
        with self._cluster.building():
            bounds = [placeholder(dtypes.int64, []) for _ in range(2)]
        _, found = self._each(
            lambda table: ([], apply_list("FleetKeyedRange", table, *bounds, dtype=self._dtype))
        )
        return self._cluster.step(found, bounds)

    def merge(self, function: RowFunction, dtype: np.dtype[Any]) -> Callable[..., Any]:
        """From keys and values for each server."""
        attrs = function_attrs(function.exported)

        def make(table: Tensor) -> tuple[list[Tensor], Any]:
            keys = placeholder(dtypes.int64, [None])
            values = placeholder(dtypes.as_dtype(dtype), [None, self._kind.dim])
            return [keys, values], apply_op("FleetKeyedMerge", table, keys, values, **attrs)

        feeds, made = self._each(make)
        return self._cluster.step(made, feeds)

    def function(self, function: RowFunction) -> Callable[..., Any]:
        """From keys and arguments for each server to the results of each."""
        if function.name not in self._functions:
            exported = function.exported
            attrs = function_attrs(exported)
            types = [dtypes.as_dtype(kind.dtype) for kind in exported.results[1:]]

            def make(table: Tensor) -> tuple[list[Tensor], Any]:
                keys = placeholder(dtypes.int64, [None])
                rest = [
                    placeholder(
                        dtypes.as_dtype(kind.dtype),
                        [int(d) if d.isdigit() else None for d in kind.dims()],
                    )
                    for kind in exported.arguments[1:]
                ]
                run = apply_op("FleetKeyedRun", table, keys, rest, Tresults=types, **attrs)
                return [keys, *rest], list(run.outputs) or run

            feeds, made = self._each(make)
            self._functions[function.name] = self._cluster.step(made, feeds)
        return self._functions[function.name]
