"""Methods of the base class for linear operators that libraries derive."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tensorfleet.graph.scopes import name_scope


class Derivable:
    """Names for the operations of a linear operator, and a check of what it is given."""

    _name: str
    _dtype: Any

    @contextlib.contextmanager
    def _name_scope(self, name: str | None = None) -> Iterator[str]:
        with name_scope(self._name), name_scope(name) if name else contextlib.nullcontext("") as scope:
            yield scope

    def _check_input_dtype(self, arg: Any) -> None:
        if arg.dtype.base_dtype != self._dtype:
            raise TypeError(
                f"Expected argument to have dtype {self._dtype}.  Found: {arg.dtype} in tensor {arg}"
            )
