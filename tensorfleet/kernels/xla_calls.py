"""Python functions as operations of compiled programs, which read and write XLA's buffers where they are.

XLA calls a function of C with a *frame*: the addresses of the operands, of the results, and of the attributes. The
structures below are those of XLA's foreign function interface (`xla/ffi/api/c_api.h` in jaxlib). A field of it never moves
within a major version. A call takes about 20 us, so it is for operations that take much longer.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from tensorfleet.kernels.parallel_for import Division

_METADATA, _EXECUTE = 1, 3  # a kind of extension, and a stage
_INTERNAL_ERROR = 13
_MAJOR_VERSION = 0
_EXIT_GRACE_SECONDS = 5.0


class _Values(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("values", ctypes.POINTER(ctypes.c_void_p)),
    ]


class _Attributes(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("values", ctypes.POINTER(ctypes.c_void_p)),
    ]


class _Frame(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("api", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("operands", _Values),
        ("results", _Values),
        ("attributes", _Attributes),
    ]


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
    ]


class _Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Version(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
    ]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("version", _Version), ("traits", ctypes.c_uint32)]


class _Extension(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("following", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    ]


class _Api(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("version", _Version),
        ("internal", ctypes.c_void_p),
        ("create_error", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
        ("others", ctypes.c_void_p * 10),
        ("schedule", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
    ]


class _Error(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    ]


class _Schedule(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("task", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
    ]


_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_Task = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_handlers: list[Any] = []  # XLA keeps their addresses
_interrupts: list[BaseException] = []
_scheduled: dict[int, Division] = {}  # what XLA's threads have still to begin, by number
_numbers = itertools.count(1)


class ForeignCall:
    """One call of a function: its attribute, and the addresses of its operands and of its results."""

    __slots__ = ("_frame", "attribute", "operands", "results")

    def __init__(self, frame: _Frame) -> None:
        self._frame = frame
        text = _Text.from_address(frame.attributes.values[0])
        self.attribute: bytes = ctypes.string_at(text.data, text.length)
        self.operands, self.results = _addresses(frame.operands), _addresses(frame.results)

    def in_parts(self, work: Callable[[int, int], Any], count: int) -> None:
        """Calls `work(i, i + 1)` for each i of `range(count)`, on the threads of XLA that have nothing else to do.

        These look for work busily for a while after each operation. So they begin at once, and threads of our own
        would find no free core.
        """
        division = Division(work, count, count)
        for _ in range(count - 1):
            self._schedule(division)
        division.end()

    def _schedule(self, division: Division) -> None:
        number = next(_numbers)
        _scheduled[number] = division
        size = ctypes.sizeof(_Schedule)
        asked = _Schedule(size, None, self._frame.context, ctypes.cast(_help_task, ctypes.c_void_p), number)
        if _Api.from_address(self._frame.api).schedule(ctypes.addressof(asked)):
            del _scheduled[number]  # refused: the caller does it


#: A function that programs can call.
Function: TypeAlias = Callable[[ForeignCall], None]


def _help(number: int) -> None:
    division = _scheduled.pop(number)
    division.tell(division.help())


_help_task = _Task(_help)


@atexit.register
def _wait_for_helpers() -> None:
    """A thread of XLA that begins a part when Python has ended would abort the process."""
    end = time.monotonic() + _EXIT_GRACE_SECONDS
    while _scheduled and time.monotonic() < end:
        time.sleep(0.001)


def register(name: str, function: Function) -> None:
    """Lets programs for the CPU call a function by `jax.ffi.ffi_call(name, ...)`, with one attribute that is a string."""
    import jax

    def handle(address: int) -> int | None:
        while True:
            try:
                return _handle(_Frame.from_address(address), function)
            except BaseException as e:  # Ctrl-C: the program must not fail, its variables may be gone already
                _interrupts.append(e)

    handler = _Handler(handle)
    _handlers.append(handler)
    capsule: Any = jax.ffi.pycapsule
    jax.ffi.register_ffi_target(name, capsule(handler), platform="cpu")


def raise_interrupts() -> None:
    """Raises what has interrupted a function, now that its program is over: a function begins again instead."""
    if _interrupts:
        raised = _interrupts[0]
        _interrupts.clear()
        raise raised


def _handle(frame: _Frame, function: Function) -> int | None:
    try:
        if frame.extension:
            _describe(frame)
        elif frame.stage == _EXECUTE:
            function(ForeignCall(frame))
    except Exception as e:  # nothing may be raised into XLA
        return _failed(frame, f"{type(e).__name__}: {e}")
    return None


def _describe(frame: _Frame) -> None:
    """Answers the question which version of the interface a function was written for: any of the major version."""
    extension = _Extension.from_address(frame.extension)
    version = _Api.from_address(frame.api).version
    if extension.kind == _METADATA and version.major == _MAJOR_VERSION:
        described = extension.metadata.contents
        described.version.major, described.version.minor = version.major, version.minor
        described.traits = 0


def _addresses(values: _Values) -> list[int]:
    buffers = values.values
    return [_Buffer.from_address(buffers[i]).data for i in range(values.size)]


def _failed(frame: _Frame, message: str) -> int | None:
    error = _Error(_Error.code.offset + _Error.code.size, None, message.encode(), _INTERNAL_ERROR)
    result: int | None = _Api.from_address(frame.api).create_error(ctypes.addressof(error))
    return result
