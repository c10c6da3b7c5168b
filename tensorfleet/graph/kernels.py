"""Calling a kernel: its arguments, its array namespace, its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.graph.operation import Operation, arg_count

if TYPE_CHECKING:
    from tensorfleet.base.types import Array
    from tensorfleet.graph.kernel_types import Check


class Kernel:
    """One operation's kernel with its attributes bound and its list inputs known.

    `call(xp, values)` gives a tuple with one array per output (for updating ops: the new values of the
    variables first). With `packed`, strings may come back in another form than arrays.
    """

    __slots__ = ("attrs", "checks", "function", "groups", "op", "single", "unpacks")

    def __init__(self, op: Operation, packed: bool = False) -> None:
        spec = op.spec
        self.op = op
        self.function: Callable[..., Any] = spec.kernel
        self.attrs = {name: op._attrs[name] for name in spec.kernel_attrs if name in op._attrs}
        if "op" in spec.kernel_attrs:
            self.attrs["op"] = op
        self.groups = _groups(op)
        self.checks = spec.checks
        declared = len(spec.outputs) == 1 and not (
            spec.outputs[0].number_attr or spec.outputs[0].type_list_attr
        )
        self.single = declared
        self.unpacks = spec.packed and not packed

    def in_numpy(self) -> Callable[..., Any] | None:
        """A shorter way to the one result on numpy arrays, for the kernels that allow it."""
        # A subclass that overrides `call` does more than to call the kernel.
        if type(self).call is not Kernel.call or self.groups is not None or self.checks or not self.single:
            return None
        return partial(self.function, np, **self.attrs)

    def call(self, first: Any, values: Sequence[Any], check: Check | None = None) -> tuple[Any, ...]:
        """Runs the kernel; `first` is the array namespace (or a host op's context)."""
        if self.groups is not None:
            values = [values[s] if type(s) is int else list(values[s[0] : s[1]]) for s in self.groups]
        if self.checks:
            result = self.function(first, *values, check=check or raise_now, **self.attrs)
        else:
            result = self.function(first, *values, **self.attrs)
        # Kernels return one array, a tuple, a list, or None: this is called for every op of every interpreted step.
        if type(result) is not tuple:
            if result is None:
                return ()
            result = (result,) if not isinstance(result, list) else tuple(result)
        return tuple(map(np.asarray, result)) if self.unpacks else result


def _groups(op: Operation) -> list[Any] | None:
    """How the flat inputs split into the kernel's arguments; None when one to one."""
    if not any(a.number_attr or a.type_list_attr for a in op.spec.inputs):
        return None
    groups: list[int | tuple[int, int]] = []
    start = 0
    for arg in op.spec.inputs:
        count = arg_count(arg, op._attrs)
        if arg.number_attr or arg.type_list_attr:
            groups.append((start, start + count))
        else:
            groups.append(start)
        start += count
    return groups


def raise_now(
    ok: Array | np.bool_ | bool,
    message: Callable[[], str] | str,
    kind: Callable[..., errors.OpError] | None = None,
) -> None:
    """The numpy life of `check`: raises unless every element of `ok` is true."""
    if ok is not True and not (ok if type(ok) is np.bool_ else np.all(ok)):
        text = message() if callable(message) else message
        raise (kind or errors.InvalidArgumentError)(None, None, text)


def run_numpy(op: Operation, values: Sequence[Any]) -> tuple[Array, ...]:
    """Runs a pure operation at once on numpy values."""
    with np.errstate(all="ignore"):
        return tuple(
            np.asarray(v) if not isinstance(v, np.ndarray) else v for v in Kernel(op).call(np, values)
        )
