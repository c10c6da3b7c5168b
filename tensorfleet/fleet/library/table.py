"""`cluster.table`: rows by 64-bit keys on the parameter servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, DTypeLike
from tensorfleet.fleet.checking import whole_number
from tensorfleet.fleet.library.arrays import NUMPY, from_numpy, kind_of, to_numpy
from tensorfleet.fleet.library.filters import Filter, Sent, check, select
from tensorfleet.fleet.library.keys import KeyDivision, to_keys
from tensorfleet.fleet.library.requests import Requests
from tensorfleet.fleet.library.row_functions import RowFunction
from tensorfleet.fleet.library.table_graph import TableGraph
from tensorfleet.state.keyed_rows import KeyedRows, RowKind, digest_of

if TYPE_CHECKING:
    from tensorfleet.fleet.library.join import Cluster

MERGES = ("sum", "max", "set")
_NO_KEYS = np.zeros(0, np.int64)
_NO_DIGEST = np.zeros(0, np.int64)
_NO_SCALES = np.zeros(0, np.float32)


@export("fleet.RowTable")
class RowTable:
    """Rows by key, shared by all workers. `Cluster.table` makes it.

    Keys are unordered whole numbers from 0 to 2^63 - 1, and a row is made when its key is first pushed or used by a
    server function. Each request has a timestamp. With `wait=False` it returns that at once, and `wait(timestamp)`
    gives the result. Requests of one worker are carried out in order.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        dim: int,
        dtype: DTypeLike,
        init: object,
        merge: str | Callable[..., Any],
        filters: Sequence[Filter],
        cache_keys: bool,
    ) -> None:
        self.name, self.dim = name, whole_number("dim", dim, 1)
        self.dtype = _number_type(dtype)
        self._initial = _initial_row(init, self.dim, self.dtype)
        self._filters = check(list(filters))
        if callable(merge):
            self._merge: RowFunction | None = RowFunction(merge, "merge", self.dim, self.dtype)
        elif merge in MERGES:
            self._merge = None
        else:
            raise ValueError(
                f"merge must be 'sum', 'max', 'set' or a function of rows and values, not {merge!r}."
            )
        if self._filters and merge != "sum":
            raise ValueError(
                f"filters keep back a part of what is pushed and add it to the next push, which needs merge='sum', not "
                f"{merge!r}."
            )
        told = "function" if callable(merge) else str(merge)
        self._kind = RowKind(name, self.dim, self.dtype.name, told, self._initial.tobytes())
        self._cluster, self._division = cluster, KeyDivision(len(cluster.servers))
        self._requests = Requests(name)
        self._functions: dict[str, RowFunction] = {}
        self._caches_keys = bool(cache_keys)
        #: what filters have kept back
        self._kept = KeyedRows(
            RowKind(name, self.dim, self.dtype.name, "sum", bytes(self.dim * self.dtype.itemsize))
        )
        self._graph = TableGraph(cluster, self._kind)
        if self._merge is not None:
            values = np.zeros((0, self.dim), self.dtype)
            self._merge.settle(cluster, f"merge/{name}", [values])
            self._merge_step = self._graph.merge(self._merge, self.dtype)
        self._graph.size()  # makes it, or says how it differs from the one that is there

    # -- requests -------------------------------------------------------------------------------------

    def push(self, keys: object, values: object, wait: bool = True) -> int:
        """Merges values, one row for each key, into the table. Returns a timestamp."""
        wanted = to_keys(keys, self.name)
        rows = self._rows(values, len(wanted))
        if not wait:  # the caller may go on with its arrays
            wanted, rows = wanted.copy(), rows.copy()
        timestamp, _ = self._made("push", lambda: self._push(wanted, rows), wait)
        return timestamp

    def pull(self, keys: object, wait: bool = True) -> Any:
        """The rows of keys, one for each, or of a `range` of keys: then (keys, rows) of those that are there, in order.

        A key without a row has the initial one. With `wait=False` it returns a timestamp.
        """
        if isinstance(keys, range):
            first, last = _bounds(keys, self.name)
            timestamp, result = self._made("pull", lambda: self._pull_range(first, last), wait)
        else:
            wanted = to_keys(keys, self.name)
            if not wait:
                wanted = wanted.copy()
            kind = kind_of(keys)
            timestamp, result = self._made("pull", lambda: self._like(self._pull(wanted), kind), wait)
        return result if wait else timestamp

    def install(self, name: str, function: Callable[..., Any]) -> None:
        """Gives a function a name, under which the servers run it on their own rows: see `call`.

        `function(rows, *arguments)` gives new rows, or a tuple of new rows and results. It is a function of JAX whose
        rows do not depend on each other. The rows of different keys may be on different servers.
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"name must be an identifier, such as 'ftrl', not {name!r}.")
        if name in self._functions:
            raise ValueError(f"name is {name!r}, under which table '{self.name}' has a function already.")
        self._functions[name] = RowFunction(function, name, self.dim, self.dtype)

    def call(self, name: str, keys: object, *arguments: object, wait: bool = True) -> Any:
        """Runs an installed function on the rows of different keys, on their servers: nothing comes in between.

        An argument with a row for each key goes along with the keys; any other goes to all servers as it is. Gives the
        results with a row for each key, None if the function has none. With `wait=False` it returns a timestamp.
        """
        function = self._functions.get(name)
        if function is None:
            known = ", ".join(map(repr, self._functions)) or "none"
            raise ValueError(
                f"name is {name!r}, under which table '{self.name}' has no function. It has: {known}. Install it first."
            )
        wanted = to_keys(keys, self.name)
        given = [to_numpy(a, f"argument {i} of '{name}'") for i, a in enumerate(arguments, 1)]
        if not function.is_settled:
            along = [a if a.ndim and len(a) == len(wanted) else None for a in given]
            function.settle(self._cluster, f"function/{self.name}/{name}", given, along)
        function.check(given, len(wanted))
        kind = kind_of(arguments[0]) if arguments else NUMPY
        call = lambda: self._like(self._call(function, wanted, given), kind)  # noqa: E731
        timestamp, result = self._made(f"call of '{name}'", call, wait)
        return result if wait else timestamp

    def wait(self, timestamp: int | None = None, timeout: float | None = None) -> Any:
        """The result of a request that did not wait, None if it has none; without a timestamp it waits for all."""
        limit = self._cluster.timeout if timeout is None else timeout
        if timestamp is None:
            return self._requests.wait_for_all(limit)
        return self._requests.wait(timestamp, limit)

    def size(self) -> int:
        """How many rows there are, on all servers."""
        return self._graph.size()

    def flush(self) -> None:
        """Pushes all that filters have kept back."""
        _, (keys, rows) = self._kept.content()
        left = np.flatnonzero(rows.any(axis=1))
        if len(left):
            self._kept.clear()
            whole = Sent(np.arange(len(left)), rows[left], _NO_SCALES)
            self._made("push", lambda: self._send(keys[left], whole), True)

    def close(self, in_good_order: bool = True) -> None:
        """Waits for what is under way."""
        try:
            if in_good_order:
                self._requests.wait_for_all(self._cluster.timeout)
                self.flush()
        finally:
            self._requests.close()

    # -- how they are made ----------------------------------------------------------------------------

    def _made(self, what: str, call: Callable[[], Any], wait: bool) -> tuple[int, Any]:
        if wait and not self._requests.is_busy():
            result = call()
            return self._requests.done(), result
        timestamp = self._requests.begin(what, call)
        return timestamp, self._requests.wait(timestamp, self._cluster.timeout) if wait else None

    def _rows(self, values: object, count: int) -> Array:
        array = to_numpy(values, f"values of table '{self.name}'")
        if array.shape == (count,) and self.dim == 1:
            array = array.reshape(count, 1)
        if array.shape != (count, self.dim):
            raise ValueError(
                f"values of table '{self.name}' must have the shape {[count, self.dim]}, a row for each key, not "
                f"{list(array.shape)}."
            )
        if array.dtype != self.dtype:
            raise TypeError(
                f"values of table '{self.name}' must be {self.dtype.name}, not {array.dtype.name}: convert them with "
                f"astype({self.dtype.name!r})."
            )
        return array

    def _push(self, keys: Array, rows: Array) -> None:
        if not self._filters:
            self._send(keys, Sent(np.arange(len(keys)), rows, _NO_SCALES))
            return
        keys, rows = _summed(keys, rows)
        rows = rows + self._kept.pull(keys)
        sent = select(self._filters, rows)
        rest = rows.copy()
        rest[sent.which] -= sent.received(self.dtype)
        self._kept.push(keys, rest, "set")
        self._send(keys, sent)

    def _send(self, keys: Array, sent: Sent) -> None:
        chosen = keys if len(sent.which) == len(keys) else keys[sent.which]
        if self._merge is not None:
            parts = self._division.parts(chosen)
            feeds = [f for at in parts for f in (chosen[at], sent.values[at])]
            self._merge_step(*feeds)
            return
        step = self._graph.push(sent.values.dtype)
        self._by_keys(
            chosen, lambda at: [sent.values[at], sent.scales[at] if sent.scales.size else _NO_SCALES], step
        )

    def _pull(self, keys: Array) -> Array:
        parts, found = self._by_keys(keys, lambda at: [], self._graph.pull)
        if len(parts) == 1:
            result: Array = found[0]
            return result
        rows = np.empty((len(keys), self.dim), self.dtype)
        for at, some in zip(parts, found, strict=True):
            rows[at] = some
        return rows

    def _by_keys(
        self, keys: Array, more: Callable[[Any], list[Array]], step: Callable[..., Any]
    ) -> tuple[list[Any], list[Any]]:
        """Makes a request of each server for its keys; sends the digest in place of keys that it was sent before."""
        parts = self._division.parts(keys)
        mine = [keys[at] for at in parts]
        digests = [self._digest(some) for some in mine]
        results: list[Any] = [None] * len(parts)
        left = list(range(len(parts)))  # a request was made of the others
        short = [self._graph.is_remembered(server, digest) for server, digest in enumerate(digests)]
        while left:
            feeds: list[Array] = []
            for server, at in enumerate(parts):
                if server in left:
                    feeds += [_NO_KEYS if short[server] else mine[server], digests[server], *more(at)]
                else:
                    feeds += [_NO_KEYS, _NO_DIGEST, *more(slice(0, 0))]
            found, knew = step(*feeds)
            for server in left:
                self._graph.remember(server, digests[server], bool(knew[server]))
                results[server] = found[server] if found else None
            # A server remembers the keys of the last requests only: it is asked again, with the keys.
            left = [server for server in left if not knew[server]]
            short = [False] * len(parts)
        return parts, results

    def _digest(self, keys: Array) -> Array:
        if not self._caches_keys or not len(keys):
            return _NO_DIGEST
        return np.frombuffer(digest_of(keys), np.int64)

    def _pull_range(self, first: int, last: int) -> tuple[Array, Array]:
        found = self._graph.pull_range(np.int64(first), np.int64(last))
        keys, rows = np.concatenate([k for k, _ in found]), np.concatenate([r for _, r in found])
        if len(found) > 1:
            order = np.argsort(keys)
            keys, rows = keys[order], rows[order]
        return keys, rows

    def _call(self, function: RowFunction, keys: Array, given: Sequence[Array]) -> Any:
        step = self._graph.function(function)
        parts = self._division.parts(keys)
        feeds = [f for at in parts for f in (keys[at], *function.cut(given, at))]
        results = step(*feeds)
        if not function.results:
            return None
        joined = []
        for i in range(function.results):
            whole = results[0][i]
            if len(parts) > 1:
                whole = np.empty((len(keys), *whole.shape[1:]), whole.dtype)
                for at, some in zip(parts, results, strict=True):
                    whole[at] = some[i]
            joined.append(whole)
        return joined[0] if len(joined) == 1 else tuple(joined)

    @staticmethod
    def _like(result: Any, kind: str) -> Any:
        if kind == NUMPY or result is None:
            return result
        if isinstance(result, tuple):
            return tuple(from_numpy(result, [kind] * len(result)))
        return from_numpy([result], [kind])[0]


def _summed(keys: Array, rows: Array) -> tuple[Array, Array]:
    """Each key once, with the sum of its rows."""
    different, which = np.unique(keys, return_inverse=True)
    if len(different) == len(keys):
        return keys, rows
    total = np.zeros((len(different), rows.shape[1]), rows.dtype)
    np.add.at(total, which, rows)
    return different, total


def _number_type(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(dtypes.as_dtype(dtype).as_numpy_dtype)
    except (TypeError, ValueError, errors.OpError):
        found = np.dtype(object)
    if found.kind not in "fiu":
        raise TypeError(f"dtype must be a type of numbers, such as 'float32', not {dtype!r}.")
    return found


def _initial_row(init: object, dim: int, dtype: np.dtype[Any]) -> Array:
    try:
        row = np.asarray(init, dtype)
    except (TypeError, ValueError):
        row = np.zeros((0, 0), dtype)
    if row.shape not in ((), (dim,)):
        raise ValueError(f"init must be a number or a row of {dim} numbers, not {init!r}.")
    return np.ascontiguousarray(np.broadcast_to(row, (dim,)))


def _bounds(keys: range, name: str) -> tuple[int, int]:
    if keys.step != 1 or keys.start < 0 or keys.stop > 2**63 - 1:
        raise ValueError(
            f"keys of table '{name}' must be a range of step 1 between 0 and 2**63 - 1, not {keys!r}."
        )
    return keys.start, keys.stop
