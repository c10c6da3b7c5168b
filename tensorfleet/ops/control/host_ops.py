"""Python functions and printing as operations: `tf.py_func`, `tf.Print`, `tf.print`."""

from __future__ import annotations

import datetime
import itertools
import logging as python_logging
import os
import secrets
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

import numpy as np

from tensorfleet.base import dtypes, errors, logging
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export, publish
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext, Step
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.kernels.interruptible_calls import Background, Call
from tensorfleet.ops.array.basic import c_name, unknown_like
from tensorfleet.ops.common import SCALAR, same_as_input

# -- Python functions --------------------------------------------------------------------------------


class _PythonFunction:
    """A function known by the token its operation carries; it lives as long as a graph that uses it."""

    __slots__ = ("__weakref__", "call", "waits")

    def __init__(self, call: Callable[..., Any], waits: bool) -> None:
        self.call = call
        #: it takes the step before its arguments, and waits only as long as the step goes on
        self.waits = waits


_functions: weakref.WeakValueDictionary[bytes, _PythonFunction] = weakref.WeakValueDictionary()
# Part of the error for a function of another process, or of a graph that is gone.
GONE = "is not found: its function lives in the process that built the graph"
_tokens = itertools.count()
_process = secrets.token_hex(8)  # a graph from another process cannot name a function of this one

# Exceptions of a function, and the error that `Session.run` raises for each.
_RAISED: tuple[tuple[tuple[type[BaseException], ...], Callable[..., errors.OpError]], ...] = (
    ((TypeError, ValueError), errors.InvalidArgumentError),
    ((StopIteration,), errors.OutOfRangeError),
    ((MemoryError,), errors.ResourceExhaustedError),
    ((NotImplementedError,), errors.UnimplementedError),
)


def call_by_token(
    step: Step, token: bytes, args: Sequence[Array], types: list[dtypes.DType]
) -> tuple[Array, ...]:
    """The results of a function for arrays, checked for their types."""
    name = token.decode()
    function = _functions.get(token)
    if function is None:
        raise errors.invalid(f"callback {name} {GONE}")
    own = [_own(np.asarray(a)) for a in args]
    try:
        result = _called(step, name, function, own)
    except (errors.DeadlineExceededError, errors.CancelledError):
        raise
    except Exception as e:
        raise _as_op_error(e) from e
    values = [] if result is None else list(result) if isinstance(result, (list, tuple)) else [result]
    if len(values) != len(types):
        raise errors.invalid(f"{name} returns {len(values)} values, but expects to see {len(types)} values.")
    return tuple(_result(name, i, v, t) for i, (v, t) in enumerate(zip(values, types, strict=True)))


def _own(value: Array) -> Any:
    """An argument that the function may change, as functions do."""
    if value.ndim == 0:
        return value[()]
    return value if value.flags.writeable else value.copy()


def _called(step: Any, name: str, function: _PythonFunction, args: list[Any]) -> Any:
    """Calls a function, which is interrupted when its step ends."""
    if function.waits:
        return function.call(step, *args)
    if step.deadline is None:
        return step.stoppable(Call(function.call, args))
    call = Background(function.call, args, name)
    try:
        step.wait(call.done, f"for {name}, which has not returned in time")
    except BaseException:
        call.stop()
        raise
    return call.outcome()


def _as_op_error(e: Exception) -> errors.OpError:
    kind = next((error for raised, error in _RAISED if isinstance(e, raised)), errors.UnknownError)
    lines = traceback.format_exception(type(e), e, e.__traceback__.tb_next if e.__traceback__ else None)
    return kind(None, None, f"{type(e).__name__}: {e}\n{''.join(lines)}")


def _result(name: str, position: int, value: Any, expected: dtypes.DType) -> Array:
    array = np.asarray(value)
    if array.dtype.kind in "SUO":
        flat = [v.encode() if isinstance(v, str) else v for v in array.ravel().tolist()]
        # The last element keeps numpy from making a table of elements that are sequences.
        array = np.array([*flat, None], object)[:-1].reshape(array.shape)
    try:
        got = dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype)
    except TypeError:
        raise errors.InternalError(None, None, f"Unsupported numpy data type {array.dtype}") from None
    if got == dtypes.string and not all(isinstance(v, (bytes, str)) for v in array.ravel()):
        odd = next(v for v in array.ravel() if not isinstance(v, (bytes, str)))
        raise errors.InternalError(None, None, f"Unsupported object type {type(odd).__name__}")
    if got != expected:
        text = f"{position}-th value returned by {name} is {c_name(got)}, but expects {c_name(expected)}"
        raise errors.invalid(text)
    return array


_PY_FUNC = ("input: list(Tin) -> output: list(Tout)", "token: string; Tin: list(type); Tout: list(type)")


@op("PyFunc", *_PY_FUNC, shape=unknown_like, host=True, stateful=True)
def _py_func(ctx: HostContext, args: list[Array], *, token: bytes, Tout: list[DType]) -> tuple[Array, ...]:
    return call_by_token(ctx.step, token, args, Tout)


@op("PyFuncStateless", *_PY_FUNC, shape=unknown_like, host=True)
def _py_func_stateless(
    ctx: HostContext, args: list[Array], *, token: bytes, Tout: list[DType]
) -> tuple[Array, ...]:
    return call_by_token(ctx.step, token, args, Tout)


not_differentiable("PyFunc", "PyFuncStateless")


@export("py_func")
def py_func(
    func: Callable[..., Any],
    inp: Iterable[TensorLike],
    Tout: DTypeLike | Sequence[DTypeLike],
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Calls a Python function on numpy arrays during each run.

    `func` gets one array (or scalar, or bytes) per tensor of `inp` and gives values of the types `Tout`: a
    type or a list of them. With `stateful=False` it must depend on nothing but its arguments. No gradient.
    """
    return _operation(register_function(func), inp, Tout, stateful, name)


def waiting_func(
    func: Callable[..., Any], inp: Iterable[TensorLike], Tout: DTypeLike | Sequence[DTypeLike]
) -> Any:
    """Like `py_func`, for a function that gets the step before its arguments and watches its deadline itself."""
    return _operation(register_function(func, waits=True), inp, Tout, True, None)


def register_function(call: Callable[..., Any], waits: bool = False) -> bytes:
    """The token of a function that the operations of the default graph may call."""
    function = _PythonFunction(call, waits)
    token = f"pyfunc_{next(_tokens)}_{_process}{os.getpid()}".encode()
    _functions[token] = function
    get_default_graph().__dict__.setdefault("_py_funcs", []).append(function)
    return token


def function_of(token: bytes) -> Callable[..., Any]:
    """The function that was registered with a token."""
    return _functions[token].call


def _operation(
    token: bytes,
    inp: Iterable[TensorLike],
    Tout: DTypeLike | Sequence[DTypeLike],
    stateful: bool,
    name: str | None,
) -> Any:
    several = isinstance(Tout, (list, tuple))
    listed: Sequence[Any] = Tout if isinstance(Tout, (list, tuple)) else [Tout]
    types = [dtypes.as_dtype(t) for t in listed]
    kind = "PyFunc" if stateful else "PyFuncStateless"
    outputs = apply_any(kind, list(inp), token=token, Tout=types, name=name)
    if not types and not stateful:
        return []
    if not types:
        return outputs[0].op if outputs else get_default_graph()._ops[-1]
    return outputs if several else outputs[0]


@export("numpy_function")
def numpy_function(
    func: Callable[..., Any],
    inp: Iterable[TensorLike],
    Tout: DTypeLike | Sequence[DTypeLike],
    name: str | None = None,
) -> Any:
    """`tf.py_func` of a function that may have effects."""
    return py_func(func, inp, Tout, stateful=True, name=name)


# -- printing ----------------------------------------------------------------------------------------


def summarized(value: Array, limit: int) -> str:
    """The first `limit` elements (all if negative) of an array, as TensorFlow writes them into messages."""
    array = np.asarray(value)
    count = array.size if limit < 0 else min(limit, array.size)
    words = (
        [_element(v) for v in array.ravel()[:count].tolist()]
        if array.dtype.kind not in "fV"
        else [_number(v) for v in array.ravel()[:count]]
    )
    more = "..." if array.size > count else ""
    if array.ndim == 0:
        return " ".join(words) + more
    return _nested(iter(words), array.shape, [count], 0) + more


def _nested(words: Iterator[str], shape: tuple[int, ...], left: list[int], depth: int) -> str:
    """Rows in brackets, until the words run out."""
    if left[0] <= 0:
        return ""
    if len(shape) == 1:
        take = min(shape[0], left[0])
        left[0] -= take
        text = " ".join(itertools.islice(words, take))
        return text + ("..." if depth and take < shape[0] else "")
    parts = []
    for _ in range(shape[0]):
        if left[0] <= 0:
            break
        parts.append(f"[{_nested(words, shape[1:], left, depth + 1)}]")
    return "".join(parts)


def _element(value: bytes | complex) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, bool):
        return "1" if value else "0"
    return "?" if isinstance(value, complex) else str(value)


def _number(value: Array | np.floating[Any]) -> str:
    """A float with 6 digits (15 for double) if these give it back, else with 9 (17)."""
    kind, short, long = (np.float64, 15, 17) if value.dtype.itemsize == 8 else (np.float32, 6, 9)
    number = float(value)
    text = f"{number:.{short}g}"
    return text if kind(text) == kind(number) or number != number else f"{number:.{long}g}"


_printed: weakref.WeakKeyDictionary[Operation, int] = weakref.WeakKeyDictionary()
_print_lock = threading.Lock()


def _write(stream: TextIO, text: str) -> None:
    with _print_lock:
        stream.write(text)
        stream.flush()


@op(
    "Print",
    "input: T, data: list(U) -> output: T",
    "T: type; U: list(type); message: string = ''; first_n: int = -1; summarize: int = 3",
    shape=same_as_input,
    host=True,
    stateful=True,
)
def _print(
    ctx: HostContext, value: Array, data: list[Array], *, message: bytes, first_n: int, summarize: int
) -> Array:
    if first_n >= 0:
        with _print_lock:
            count = _printed.get(ctx.op, 0)
            _printed[ctx.op] = count + 1
        if count >= first_n:
            return value
    parts = "".join(f"[{summarized(d, summarize)}]" for d in data)
    _write(sys.stderr, f"{message.decode(errors='replace')}{parts}\n")
    return value


@gradient("Print")
def _print_gradient(op: Operation, dy: Tensor) -> list[Tensor | None]:
    return [dy] + [None] * (len(op.inputs) - 1)


@export("Print")
def Print(
    input_: TensorLike,
    data: Iterable[TensorLike],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`input_`, and each time it is computed a line with `data` on standard error."""
    return apply(
        "Print", input_, list(data), message=message, first_n=first_n, summarize=summarize, name=name
    )


def _format_shape(op: Operation) -> TensorShape:
    places, count = op._attrs["template"].count(op._attrs["placeholder"]), len(op._inputs)
    if places != count:
        raise ValueError(f"num placeholders in template and num inputs must match: {places} vs. {count}")
    return SCALAR


@op(
    "StringFormat",
    "inputs: list(T) -> output: string",
    "T: list(type); template: string = '%s'; placeholder: string = '%s'; summarize: int = 3",
    shape=_format_shape,
    host=True,
)
def _string_format(
    ctx: HostContext, inputs: list[Array], *, template: bytes, placeholder: bytes, summarize: int
) -> Array:
    pieces = template.split(placeholder)
    out = np.empty((), object)
    texts = [_with_edges(i, summarize).encode(errors="surrogateescape") for i in inputs]
    out[()] = b"".join(p + t for p, t in zip(pieces, [*texts, b""], strict=True))
    return out


def _with_edges(value: Array, limit: int, depth: int = 0) -> str:
    """An array as text, with the first and last `limit` elements of each axis, inside `depth` brackets."""
    array = np.asarray(value)
    if array.ndim == 0:
        item = array[()]
        if isinstance(item, bytes):
            return _quote(item)
        return _number(item) if array.dtype.kind in "fV" else _element(item.item())
    items: list[str]
    if limit < 0 or len(array) <= 2 * limit:
        items = [_row(a, limit, depth) for a in array]
    else:
        items = [_row(a, limit, depth) for a in array[:limit]]
        items += ["...", *(_row(a, limit, depth) for a in array[-limit:])]
    separator = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * (depth + 1)
    return "[" + separator.join(items) + "]"


def _row(value: Array | bytes, limit: int, depth: int) -> str:
    if isinstance(value, bytes):
        return _quote(value)
    return _with_edges(value, limit, depth + 1)


_ESCAPED = str.maketrans(
    {chr(c): f"\\{c:03o}" for c in (*range(32), 127)}
    | {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "'": r"\'", "\\": r"\\"}
)


def _quote(text: bytes) -> str:
    """A string as C would write it, but with the bytes of other letters as they are."""
    return '"' + text.decode(errors="surrogateescape").translate(_ESCAPED) + '"'


# The streams of the log, and the letter in front of their lines.
_LOGS = {"log(info)": "I", "log(warning)": "W", "log(error)": "E"}


def _printed_shape(op: Operation) -> list[TensorShape]:
    rank = op._inputs[0].shape.rank
    if rank not in (None, 0):
        raise ValueError(f"input must be a scalar, but has rank: {rank}")
    return []


@op(
    "PrintV2",
    "input: string ->",
    "output_stream: string = stderr; end: string = '\n'",
    shape=_printed_shape,
    host=True,
    stateful=True,
)
def _print_v2(ctx: HostContext, text: Array, *, output_stream: bytes, end: bytes) -> None:
    where = output_stream.decode()
    line = np.asarray(text).item().decode(errors="replace") + end.decode()
    if where.startswith("file://"):
        with open(where[len("file://") :], "a") as file:
            _write(file, line)
    elif where in _LOGS:
        _write(sys.stderr, f"{datetime.datetime.now()}: {_LOGS[where]} print] {line}")
    else:
        _write(sys.stdout if where == "stdout" else sys.stderr, line)


@export("print")
def print_(*inputs: TensorLike, **kwargs: Any) -> Operation:
    """An operation that prints tensors and other values, as `print` would, each time it runs.

    Options: `output_stream` (sys.stderr, sys.stdout or "file://..."), `summarize` (how many elements at
    both ends of each axis, -1 for all), `end`, `sep`, `name`.
    """
    stream = kwargs.pop("output_stream", sys.stderr)
    name, summarize = kwargs.pop("name", None), kwargs.pop("summarize", 3)
    end, sep = kwargs.pop("end", "\n"), kwargs.pop("sep", " ")
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    tensors: list[Tensor] = []
    template = sep.join(_templated(value, tensors) for value in inputs)
    if template == _PLACE and tensors[0].dtype == dtypes.string and tensors[0].shape.rank == 0:
        text = tensors[0]
    else:
        text = apply(
            "StringFormat",
            tensors,
            template=template,
            placeholder=_PLACE,
            summarize=summarize,
            name=name and f"{name}_format",
        )
    return apply_op("PrintV2", text, output_stream=_stream_name(stream), end=end, name=name)


# Stands for a tensor inside a template; nothing a user would print.
_PLACE = "\x00{}\x00"


def _templated(value: TensorLike, tensors: list[Tensor]) -> str:
    if isinstance(value, Tensor) or hasattr(value, "_as_graph_element"):
        tensors.append(to_tensor(value))
        return _PLACE
    if isinstance(value, SparseTensor):
        tensors += [value.indices, value.values, value.dense_shape]
        return f"'SparseTensor(indices={_PLACE}, values={_PLACE}, shape={_PLACE})'"
    if isinstance(value, dict):
        pairs = sorted(value.items(), key=lambda pair: repr(pair[0]))
        return "{" + ", ".join(f"{_quoted(k)}: {_templated(v, tensors)}" for k, v in pairs) + "}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(_quoted(v) if isinstance(v, str) else _templated(v, tensors) for v in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return str(value)


def _quoted(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def _stream_name(stream: Any) -> str:
    if isinstance(stream, str) and (stream.startswith("file://") or stream in ("stdout", "stderr", *_LOGS)):
        return stream
    for level in ("info", "warning", "warn", "error"):
        for log in (logging, python_logging):
            if stream is getattr(log, level, None) or stream == getattr(log, level.upper(), None):
                return f"log({'warning' if level == 'warn' else level})"
    if stream in (sys.stdout, sys.__stdout__):
        return "stdout"
    if stream in (sys.stderr, sys.__stderr__):
        return "stderr"
    raise ValueError(f'Unsupported output stream {stream!r}: use sys.stdout, sys.stderr or "file://<path>".')


class _Functions:
    """The registry of functions, for programs that look for leaks."""

    def size(self) -> int:
        """The number of functions that some graph still uses."""
        return len(_functions)


publish(_Functions(), "python.ops.script_ops._py_funcs")
