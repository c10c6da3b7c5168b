"""Convolutions and their gradients by oneDNN, where it is installed, as calls of compiled programs.

A call divides its examples into parts, one for each core, and XLA's threads do them. How it is divided depends on the
shapes and the machine alone, never on who is free, so that sums over examples come out the same every time.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

import numpy as np

from tensorfleet.base.types import Array, ArrayModule, Dims
from tensorfleet.kernels import xla_calls
from tensorfleet.kernels.onednn_library import (
    OPERANDS,
    Geometry,
    OneDnn,
    arguments,
    calls_allowed,
    channels_last,
    filters_last,
    library,
)
from tensorfleet.kernels.parallel_for import thread_count
from tensorfleet.kernels.windows import WindowGrid

# Fewer multiplications take XLA no longer than a call takes (20 us), and a part no longer than it takes a thread to wake up.
MIN_MULTIPLICATIONS = 1 << 22
# The library's code for other processors was not measured, and its plain loops are far slower than XLA's.
_MEASURED = "avx512"
_TARGET = "tensorfleet_convolution"
_MAX_PLANS = 512
_ALIGNMENT_BYTES = 64

_arenas: list[Array] = []  # memory that calls have left; one call takes one


def planned(kind: str, dtype: np.dtype[Any], win: WindowGrid, filters: int) -> Geometry | None:
    """The convolution or gradient of `win` with so many filters for the library, None if it does not suit it."""
    if not calls_allowed() or dtype != np.float32 or library() is None:
        return None
    inner = slice(1, -1)
    geometry = Geometry(
        kind,
        win.in_shape,
        (*win.size[inner], win.in_shape[-1], filters),
        (*win.out_shape[:-1], filters),
        win.stride[inner],
        win.dilation[inner],
        tuple([low for low, _ in win.pads[inner]]),
        tuple([high for _, high in win.pads[inner]]),
    )
    if not _suits(geometry):
        return None
    try:
        plan = _plan(geometry.text().encode())
    except OSError:  # the library cannot do it
        return None
    return geometry if _MEASURED in plan.implementation else None


def convolve(xp: ArrayModule, geometry: Geometry, first: Array, second: Array) -> Array:
    """The result of a `planned` convolution, traced; its operands are those that `OPERANDS` names."""
    import jax

    _register()
    shape = {"forward": geometry.y, "input": geometry.x, "filter": geometry.w}[geometry.kind]
    described: Any = jax.ShapeDtypeStruct
    call: Any = jax.ffi.ffi_call(_TARGET, described(shape, xp.float32))
    result: Array = call(first, second, geometry=geometry.text())
    return result


def _suits(geometry: Geometry) -> bool:
    """Whether it is large enough, and each window sees some of the image."""
    threads = thread_count()
    return (
        geometry.multiplications() >= MIN_MULTIPLICATIONS
        and min(*geometry.x, *geometry.w, *geometry.y) > 0
        # With fewer examples most cores would have nothing to do.
        and 2 * geometry.x[0] >= threads
        and all(
            min(pads) >= 0 and max(pads) <= (taps - 1) * dilation and taps <= seen
            for pads, taps, dilation, seen in zip(
                zip(geometry.before, geometry.after, strict=True),
                geometry.w[:-2],
                geometry.dilation,
                geometry.x[1:-1],
                strict=True,
            )
        )
    )


@lru_cache(1)
def _register() -> None:
    xla_calls.register(_TARGET, _run)


def _run(call: xla_calls.ForeignCall) -> None:
    _plan(call.attribute).run(call)


class _Plan:
    """A convolution in parts of its examples; several threads may run it at the same time."""

    def __init__(self, dnn: OneDnn, geometry: Geometry) -> None:
        self.dnn, self.geometry = dnn, geometry
        self.counts = _division(geometry)
        with dnn.in_this_thread():
            first = dnn.convolution(
                geometry.of_examples(self.counts[0]), dnn.layout(filters_last(geometry.w)[0])
            )
            self.filters = dnn.chosen_filters(first, geometry.kind)
            self._descriptions = {self.counts[0]: first}
            for count in set(self.counts[1:]) - {self.counts[0]}:
                self._descriptions[count] = dnn.convolution(geometry.of_examples(count), self.filters)
            self.primitives = {n: dnn.primitive(d) for n, d in self._descriptions.items()}
            self.plain = dnn.layout(*filters_last(geometry.w))
            ends = (self.plain, self.filters)
            self.reorder = dnn.reorder(*(ends[::-1] if geometry.kind == "filter" else ends))
        self.scratchpads = {n: dnn.scratchpad(d) for n, d in self._descriptions.items()}
        self.implementation = dnn.implementation(first)
        self._idle: list[_Arrays] = []

    def run(self, call: xla_calls.ForeignCall) -> None:
        """Runs it on the arrays of a call, which are in the order of `OPERANDS`."""
        try:
            arrays = self._idle.pop()
        except IndexError:
            arrays = _Arrays(self)
        arena = _borrowed(arrays.size)
        addresses = (*call.operands, *call.results)
        named = dict(zip(OPERANDS[self.geometry.kind], addresses, strict=True))
        arrays.place(named, arena)
        if self.geometry.kind != "filter":
            arrays.exchange()
        call.in_parts(arrays.convolve, len(self.counts))
        if self.geometry.kind == "filter":
            arrays.add_up(arena)
            arrays.exchange()
        # Not after an error: somebody may still be using them.
        _arenas.append(arena)
        self._idle.append(arrays)


class _Arrays:
    """The operands of one call of a plan at a time, as the library wants to be told of them."""

    def __init__(self, plan: _Plan) -> None:
        dnn, geometry = plan.dnn, plan.geometry
        self._dnn, self._plan = dnn, plan
        self._filter_bytes = dnn.size(plan.filters)
        self._filter_step = _rounded(self._filter_bytes)
        self._copies = len(plan.counts) if geometry.kind == "filter" else 1
        self.size = self._copies * self._filter_step
        self._parts: list[tuple[Any, ...]] = []
        start = 0
        names = OPERANDS[geometry.kind]
        self._filter = names[2] if geometry.kind == "filter" else names[1]
        layouts = {"x": geometry.x, "dx": geometry.x, "y": geometry.y, "dy": geometry.y}
        self._memories: list[tuple[Any, str, int]] = []
        for number, count in enumerate(plan.counts):
            memories: dict[str, Any] = {}
            for name in names:
                if name == self._filter:
                    memories[name] = dnn.memory(plan.filters)
                    self._memories.append(
                        (memories[name], "blocked", number % self._copies * self._filter_step)
                    )
                    continue
                shape = layouts[name]
                memories[name] = dnn.memory(dnn.layout(*channels_last((count, *shape[1:]))))
                self._memories.append((memories[name], name, start * int(np.prod(shape[1:])) * 4))
            memories["scratchpad"] = dnn.memory(plan.scratchpads[count])
            self._memories.append((memories["scratchpad"], "blocked", self.size))
            self.size += _rounded(dnn.size(plan.scratchpads[count]))
            self._parts.append(
                (plan.primitives[count], dnn.stream(), len(memories), arguments(memories), memories)
            )
            start += count
        ends = {"x": dnn.memory(plan.plain), "y": dnn.memory(plan.filters)}
        self._memories += [(ends["x"], self._filter, 0), (ends["y"], "blocked", 0)]
        if geometry.kind == "filter":
            ends = {"x": ends["y"], "y": ends["x"]}
        self._exchange = (plan.reorder, dnn.stream(), len(ends), arguments(ends), ends)

    def place(self, addresses: dict[str, int], arena: Array) -> None:
        """Tells the library where everything is."""
        addresses["blocked"] = arena.ctypes.data
        for memory, name, offset in self._memories:
            self._dnn.set_address(memory, addresses[name] + offset)

    def convolve(self, start: int, stop: int) -> None:
        """Does some of the parts."""
        for primitive, stream, count, args, _ in self._parts[start:stop]:
            self._dnn.call(primitive, stream, count, args)

    def exchange(self) -> None:
        """Copies the filter to the library's layout, or its gradient back."""
        self._dnn.call(*self._exchange[:4])

    def add_up(self, arena: Array) -> None:
        """Adds the gradients of all parts to that of the first."""
        step, size = self._filter_step, self._filter_bytes
        gradients = [arena[i * step : i * step + size].view(np.float32) for i in range(self._copies)]
        for gradient in gradients[1:]:
            gradients[0] += gradient


@lru_cache(_MAX_PLANS)
def _plan(attribute: bytes) -> _Plan:
    dnn = library()
    if dnn is None:
        raise OSError("oneDNN is not installed here: pip install 'tensorfleet[onednn]'")
    return _Plan(dnn, Geometry.read(attribute.decode()))


def _division(geometry: Geometry) -> Dims:
    """How many examples each part has."""
    examples = geometry.x[0]
    worth = max(1, geometry.multiplications() // MIN_MULTIPLICATIONS)
    parts = min(thread_count(), examples, worth)
    ends = [examples * i // parts for i in range(parts + 1)]
    return tuple([end - begin for begin, end in itertools.pairwise(ends)])


def _borrowed(size: int) -> Array:
    """Memory of at least so many bytes, preferably that of an earlier call."""
    try:
        arena = _arenas.pop()
    except IndexError:
        arena = np.empty(0, np.uint8)
    if arena.size >= size:
        return arena
    memory = np.empty(size + _ALIGNMENT_BYTES, np.uint8)
    return memory[-memory.ctypes.data % _ALIGNMENT_BYTES :]


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
