"""Functions of rows that run on the servers of a table."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.kernels.exported_functions import ArrayType, ExportedFunction, TracedFunction
from tensorfleet.runtime.devices import load_jax

if TYPE_CHECKING:
    from tensorfleet.fleet.library.join import Cluster

_ROWS = "b"  # what the number of rows is called while a function is traced


class RowFunction:
    """A function of JAX from rows and arguments to new rows and results, traced for any number of rows."""

    def __init__(self, function: Callable[..., Any], name: str, dim: int, dtype: np.dtype[Any]) -> None:
        if not callable(function):
            raise TypeError(f"function must be a function of JAX, not {function!r}.")
        self._function, self.name = function, name
        self._dim, self._dtype = dim, dtype
        self._traced: TracedFunction | None = None
        #: how many results it has beside the new rows
        self.results = 0

    @property
    def is_settled(self) -> bool:
        """Whether the types of its arguments are known."""
        return self._traced is not None

    @property
    def exported(self) -> ExportedFunction:
        """The function as it travels."""
        assert self._traced is not None
        return self._traced.exported

    def settle(
        self,
        cluster: Cluster,
        place: str,
        given: Sequence[Array],
        along: Sequence[Array | None] | None = None,
    ) -> None:
        """Traces it for arguments of these types. Other workers must have the same function under this name."""
        load_jax()
        along = list(given) if along is None else along
        kinds = [ArrayType(self._dtype.name, f"{_ROWS}, {self._dim}")]
        for value, one_for_each in zip(given, along, strict=True):
            sizes = (
                [_ROWS, *map(str, value.shape[1:])] if one_for_each is not None else [*map(str, value.shape)]
            )
            kinds.append(ArrayType(value.dtype.name, ", ".join(sizes)))
        labels = ["rows", *(f"argument {i}" for i in range(1, len(kinds)))]
        wide = any(kind.dtype in ("int64", "uint64", "float64") for kind in kinds)
        try:
            traced = TracedFunction(self._flat, self.name, labels, kinds, wide)
        except Exception as e:  # whatever the user's function raises
            listed = ", ".join(f"{n}: {k.dtype}[{k.sizes}]" for n, k in zip(labels, kinds, strict=True))
            raise ValueError(
                f"The function '{self.name}' cannot run on servers for ({listed}): {type(e).__name__}: "
                f"{str(e).splitlines()[0]}. It must be a function of JAX for any number of rows."
            ) from e
        self._check_results(traced.exported)
        said = {"types": [[k.dtype, k.sizes] for k in kinds], "code": _digest(self._flat, kinds, wide)}
        cluster.agree(place, said, lambda have, want: _difference(self.name, have, want))
        self._traced, self.results = traced, len(traced.exported.results) - 1

    def _flat(self, *values: Any) -> list[Any]:
        made = self._function(*values)
        return list(made) if isinstance(made, (tuple, list)) else [made]

    def _check_results(self, exported: ExportedFunction) -> None:
        for i, kind in enumerate(exported.results):
            if kind.dims()[:1] != [_ROWS]:
                raise ValueError(
                    f"result {i} of the function '{self.name}' has the shape [{kind.sizes}]: it must have a row for each "
                    "key, because each server calls the function on its own rows."
                )
        new, wanted = exported.results[0], [_ROWS, str(self._dim)]
        if new.dims() != wanted or new.dtype != self._dtype.name:
            raise ValueError(
                f"The new rows that the function '{self.name}' gives are {new.dtype}[{new.sizes}], not "
                f"{self._dtype.name}[{', '.join(wanted)}] as the table's."
            )

    def check(self, given: Sequence[Array], rows: int) -> None:
        """ValueError or TypeError unless arguments are of the types that it was traced for."""
        wanted = self.exported.arguments[1:]
        if len(given) != len(wanted):
            raise TypeError(f"The function '{self.name}' takes {len(wanted)} arguments, not {len(given)}.")
        for i, (value, kind) in enumerate(zip(given, wanted, strict=True), 1):
            sizes = [rows if d == _ROWS else int(d) for d in kind.dims()]
            if list(value.shape) != sizes or value.dtype.name != kind.dtype:
                raise ValueError(
                    f"argument {i} of '{self.name}' is {value.dtype.name}{list(value.shape)}, not {kind.dtype}{sizes}, as "
                    f"in its first call for {rows} keys."
                )

    def cut(self, given: Sequence[Array], at: Any) -> list[Array]:
        """The arguments of the keys at these positions."""
        kinds = self.exported.arguments[1:]
        return [
            value[at] if kind.dims()[:1] == [_ROWS] else value
            for value, kind in zip(given, kinds, strict=True)
        ]


def _digest(function: Callable[..., Any], kinds: Sequence[ArrayType], wide: bool) -> str:
    """Tells apart what functions compute, in any process."""
    jax, _ = load_jax()
    with jax.enable_x64(wide):
        given = [
            jax.ShapeDtypeStruct([8 if d == _ROWS else int(d) for d in kind.dims()], np.dtype(kind.dtype))
            for kind in kinds
        ]
        closed = jax.make_jaxpr(function)(*given)
    consts = [np.asarray(c).tobytes() for c in closed.consts]
    return hashlib.sha256(b"".join([str(closed.jaxpr).encode(), *consts])).hexdigest()[:16]


def _difference(name: str, have: dict[str, Any], want: dict[str, Any]) -> str:
    if have["types"] != want["types"]:
        return f"function: '{name}' takes {have['types'][1:]} there and {want['types'][1:]} here"
    return f"function: '{name}' computes something else there"
