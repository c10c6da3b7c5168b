"""One signature of a segment as a compiled program."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import starmap
from typing import TYPE_CHECKING, Any

from tensorfleet.kernels import xla_calls
from tensorfleet.runtime.xla_exit_guard import within_xla

if TYPE_CHECKING:
    from types import ModuleType

    from jax import Device, ShapeDtypeStruct

    from tensorfleet.base.types import Array, Dims
    from tensorfleet.runtime.segments.packing import Packing
    from tensorfleet.runtime.segments.padded_trace import PaddedTrace
    from tensorfleet.runtime.values import Values


class CompiledSegment:
    """One signature of a segment as an XLA program."""

    __slots__ = (
        "_direct",
        "call",
        "constants",
        "cpu",
        "joined",
        "packing",
        "padding",
        "proven",
        "reused",
        "skips",
    )

    def __init__(
        self,
        call: Callable[..., Any],
        cpu: Device | None,
        skips: list[int],
        joined: list[list[int]],
        constants: tuple[Array, ...],
        packing: Packing,
        reused: tuple[int, ...] = (),
        padding: PaddedTrace | None = None,
    ) -> None:
        self.call = self._direct = call
        self.padding = padding  # what makes it serve several lengths
        self.constants = constants  # its last argument, always the same
        self.cpu = cpu  # which of the CPU's devices it runs on, None for the usual one
        self.skips = skips
        self.joined = joined  # inputs that are passed as one
        self.reused = reused  # variables that get their new values in place, beside those the segment owns
        self.packing = packing  # variables that are passed and returned together
        self.proven = False  # whether it has run before: it may have asked for more memory than there is

    def run(self, args: tuple[Any, ...], results: list[Any]) -> tuple[Values, Values, list[Array]]:
        """Gives the outputs, the new values of variables, and whether all checks held, if there are any.

        The step is over when the results are ready: XLA may still be reading the caller's arrays until then.
        """
        with within_xla:
            # Extended in C: an interrupt (Ctrl-C) is raised after `made` has the results, never between the two. The old
            # values of variables may be gone by then (decision 16).
            results.extend(starmap(self._direct, ((*args, self.constants),)))
            outputs, written, ok = results[0]
            for result in ok or written or outputs:  # all of them become ready together
                if result is not None:
                    result.block_until_ready()
                    break
        xla_calls.raise_interrupts()
        if not self.proven:
            self.proven = True
            # At the first call JAX makes `_call`, its entry in C++. It saves the Python function around it.
            self._direct = getattr(self.call, "_call", None) or self.call
        return outputs, written, ok


class ArrayShape:
    """The shape and the type of an array, in its place while a program is compiled."""

    def __init__(self, shape: Dims, dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype
        self.size = math.prod(shape)

    @staticmethod
    def of(array: Any) -> ArrayShape | None:
        """Describes an array; None for none."""
        return None if array is None else ArrayShape(array.shape, array.dtype)

    def abstract(self, jax: ModuleType) -> ShapeDtypeStruct:
        """The same for JAX."""
        result: ShapeDtypeStruct = jax.ShapeDtypeStruct(self.shape, self.dtype)
        return result
