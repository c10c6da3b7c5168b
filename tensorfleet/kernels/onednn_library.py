"""oneDNN, the library that TensorFlow's convolutions are of, where it is installed (`pip install tensorfleet[onednn]`).

Everything here runs in the thread that calls it: oneDNN's own threads (OpenMP) wait for one another busily, which makes
a convolution many times slower where others want the cores too. Callers divide the work among other threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import math
import threading
from collections.abc import Iterator, Sequence
from ctypes import byref, c_char, c_float, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tensorfleet.base.types import Dims

_PACKAGE, _FILE, _THREADS = "onednn-cpu-gomp", "libdnnl.so.3", "libgomp.so.1"
_MAX_DIMENSIONS = 12
# Names of dnnl_types.h.
_CPU, _IN_ORDER, _FLOAT, _ANY_LAYOUT, _TRAINING, _DIRECT, _USER_SCRATCHPAD = 1, 1, 3, 1, 64, 1, 1
_IMPLEMENTATION, _WEIGHTS, _WEIGHTS_GRADIENT, _SCRATCHPAD = 8, 131, 132, 136
_ARGUMENTS = {
    "x": 1,
    "y": 17,
    "w": 33,
    "scratchpad": 80,
    "dx": 129,
    "dy": 145,
    "dw": 161,
}
_of_thread = threading.local()
#: What a convolution reads and what it writes, by kind.
OPERANDS = {"forward": ("x", "w", "y"), "input": ("dy", "w", "dx"), "filter": ("x", "dy", "dw")}


@dataclass(frozen=True)
class Geometry:
    """A convolution or one of its gradients, channels last: kind, shapes, and what windows do along the inner axes."""

    kind: str
    x: Dims
    w: Dims
    y: Dims
    stride: Dims
    dilation: Dims
    before: Dims
    after: Dims

    def text(self) -> str:
        """All of it, as `read` takes it."""
        return ";".join([self.kind, *[",".join(map(str, v)) for v in list(vars(self).values())[1:]]])

    @staticmethod
    def read(text: str) -> Geometry:
        """The geometry that `text` was made of."""
        kind, *numbers = text.split(";")
        return Geometry(kind, *[tuple(map(int, some.split(","))) for some in numbers])

    def of_examples(self, count: int) -> Geometry:
        """The same for another number of examples."""
        x, y = (count, *self.x[1:]), (count, *self.y[1:])
        return Geometry(self.kind, x, self.w, y, self.stride, self.dilation, self.before, self.after)

    def multiplications(self) -> int:
        """How many it needs."""
        return math.prod(self.y[:-1]) * math.prod(self.w)


# Of `dnnl_sgemm`: how A and B lie, rows, columns, length of the sums, the factor of the product, A and B with their
# strides, the factor of C, C and its stride.
_MULTIPLY: list[Any] = [
    *[c_char, c_char, c_int64, c_int64, c_int64],
    *[c_float, c_void_p, c_int64, c_void_p, c_int64],
    *[c_float, c_void_p, c_int64],
]


class _Argument(ctypes.Structure):
    _fields_ = [("kind", c_int), ("memory", c_void_p)]


class _Object(c_void_p):
    """An object of the library; it is destroyed with this."""

    destroy: Any = None

    def __del__(self) -> None:
        if self.destroy is not None and self.value:
            self.destroy(self)


class OneDnn:
    """The loaded library."""

    def __init__(self, path: str) -> None:
        # Calls that take no time keep Python's lock: to get it back while other threads want it would take longer.
        threads, short = ctypes.PyDLL(_THREADS), ctypes.PyDLL(path)
        self._thread_count, self._set_thread_count = threads.omp_get_max_threads, threads.omp_set_num_threads
        self._calls = ctypes.CDLL(path)
        self._calls.dnnl_primitive_desc_query_md.restype = c_void_p
        self._calls.dnnl_memory_desc_get_size.restype = c_size_t
        self.set_address = short.dnnl_memory_set_data_handle
        self.set_address.argtypes = [c_void_p, c_void_p]
        self._execute = self._calls.dnnl_primitive_execute
        self._multiply = self._calls.dnnl_sgemm
        self._multiply.argtypes = _MULTIPLY
        self._engine = self.made("engine_create", "engine", _CPU, c_size_t(0))

    @contextlib.contextmanager
    def in_this_thread(self) -> Iterator[None]:
        """Around all that makes convolutions; other libraries keep the threads that they had."""
        before = self._thread_count()
        self._set_thread_count(1)
        try:
            yield
        finally:
            self._set_thread_count(before)

    def made(self, name: str, kind: str, *args: Any) -> _Object:
        """A new object of a kind, made by a function of the library; it ends with `OSError` where that cannot be."""
        new = _Object()
        status = getattr(self._calls, f"dnnl_{name}")(byref(new), *args)
        if status:
            raise OSError(f"oneDNN's {name} failed with status {status}.")
        new.destroy = getattr(self._calls, f"dnnl_{kind}_destroy")
        return new

    def call(self, primitive: _Object, stream: _Object, count: int, args: Any) -> None:
        """Runs an operation on so many arguments, in this thread."""
        before = self._thread_count()
        self._set_thread_count(1)
        try:
            status = self._execute(primitive, stream, count, args)
        finally:
            self._set_thread_count(before)
        if status:
            raise OSError(f"oneDNN's call failed with status {status}.")

    def add_product(self, sizes: Dims, a: int, b: int, c: int, strides: Dims, before: float) -> None:
        """Sets C to A'B + `before` * C, of matrices at these addresses, whose rows lie so many numbers apart.

        C has `sizes[0]` rows and `sizes[1]` columns, A and B have `sizes[2]` rows. To be called `in_this_thread`.
        """
        status = self._multiply(b"T", b"N", *sizes, 1.0, a, strides[0], b, strides[1], before, c, strides[2])
        if status:
            raise OSError(f"oneDNN's product failed with status {status}.")

    def layout(self, shape: Dims, strides: Dims | None = None) -> _Object:
        """A description of arrays of float32; without strides the library chooses where elements are."""
        name = "memory_desc_create_with_tag" if strides is None else "memory_desc_create_with_strides"
        where = _ANY_LAYOUT if strides is None else _sizes(strides)
        return self.made(name, "memory_desc", len(shape), _sizes(shape), _FLOAT, where)

    def memory(self, layout: c_void_p) -> _Object:
        """An array at an address that is given later."""
        return self.made("memory_create", "memory", layout, self._engine, None)

    def stream(self) -> _Object:
        """What calls are made through."""
        return self.made("stream_create", "stream", self._engine, _IN_ORDER)

    def primitive(self, description: _Object) -> _Object:
        """The operation of a description."""
        return self.made("primitive_create", "primitive", description)

    def reorder(self, source: c_void_p, target: c_void_p) -> _Object:
        """Copies between two layouts."""
        ends = (source, self._engine, target, self._engine)
        return self.primitive(self.made("reorder_primitive_desc_create", "primitive_desc", *ends, None))

    def convolution(self, geometry: Geometry, filters: c_void_p) -> _Object:
        """The description of a convolution whose filter has this layout."""
        kind = geometry.kind
        x, y = (self.layout(*channels_last(shape)) for shape in (geometry.x, geometry.y))
        attributes = self.made("primitive_attr_create", "primitive_attr")
        self._calls.dnnl_primitive_attr_set_scratchpad_mode(attributes, _USER_SCRATCHPAD)
        dilation = [d - 1 for d in geometry.dilation]
        inner = [_sizes(v) for v in (geometry.stride, dilation, geometry.before, geometry.after)]
        bias = () if kind == "input" else (None,)
        hint = () if kind == "forward" else (None,)
        how = (_TRAINING, _DIRECT) if kind == "forward" else (_DIRECT,)
        name = {"forward": "forward", "input": "backward_data", "filter": "backward_weights"}[kind]
        args = (*how, x, filters, *bias, y, *inner, *hint, attributes)
        function = f"convolution_{name}_primitive_desc_create"
        return self.made(function, "primitive_desc", self._engine, *args)

    def chosen_filters(self, description: _Object, kind: str) -> c_void_p:
        """The layout of the filter that a convolution wants; it belongs to the description."""
        which = _WEIGHTS_GRADIENT if kind == "filter" else _WEIGHTS
        return c_void_p(self._calls.dnnl_primitive_desc_query_md(description, which, 0))

    def scratchpad(self, description: _Object) -> c_void_p:
        """The layout of the memory that a convolution needs while it runs."""
        return c_void_p(self._calls.dnnl_primitive_desc_query_md(description, _SCRATCHPAD, 0))

    def size(self, layout: c_void_p) -> int:
        """The bytes of an array."""
        return int(self._calls.dnnl_memory_desc_get_size(layout))

    def implementation(self, description: _Object) -> str:
        """The name of the library's code for a convolution, with the processor's instructions that it is for."""
        name = ctypes.c_char_p()
        self._calls.dnnl_primitive_desc_query(description, _IMPLEMENTATION, 0, byref(name))
        return (name.value or b"").decode()


def channels_last(shape: Dims) -> tuple[Dims, Dims]:
    """An array [examples, ..., channels] as the library names its axes, with strides: channels second."""
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return (shape[0], shape[-1], *shape[1:-1]), (strides[0], 1, *strides[1:-1])


def filters_last(shape: Dims) -> tuple[Dims, Dims]:
    """A filter [..., in, out] as the library names its axes, with strides: out, in, and the others."""
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return (shape[-1], shape[-2], *shape[:-2]), (1, strides[-2], *strides[:-2])


def arguments(memories: dict[str, Any]) -> Any:
    """The arrays of a call, by the names that `OPERANDS` gives them."""
    pairs = [_Argument(_ARGUMENTS[name], memory.value) for name, memory in memories.items()]
    return (_Argument * len(pairs))(*pairs)


def _sizes(values: Sequence[int]) -> Any:
    return (c_int64 * _MAX_DIMENSIONS)(*values)


@contextlib.contextmanager
def allow_calls(allow: bool = True) -> Iterator[None]:
    """Lets what is traced inside call the library: the program will run on the CPU."""
    before = calls_allowed()
    _of_thread.allowed = allow
    try:
        yield
    finally:
        _of_thread.allowed = before


def calls_allowed() -> bool:
    """Whether what this thread traces may call the library."""
    return getattr(_of_thread, "allowed", False)


@cache
def library() -> OneDnn | None:
    """The library, None where it is not installed or cannot be loaded."""
    try:
        files = importlib.metadata.files(_PACKAGE) or []
        path = next((Path(str(f.locate())) for f in files if f.name == _FILE), None)
        return OneDnn(str(path.resolve())) if path is not None else None
    except (importlib.metadata.PackageNotFoundError, OSError):
        return None
