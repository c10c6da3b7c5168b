"""The op table: inputs, outputs, kernel and gradient of each op.

An op is declared once, in one block:

    @op("Tanh", "x: T -> y: T", "T: inexact", shape=same_as_input)
    def tanh(xp, x):
        return xp.tanh(x)

The signature and the attributes are TensorFlow's. The function is the kernel. It is called with the
array namespace (`numpy`, or `jax.numpy` while a segment is traced), then the inputs in order (a list
input arrives as a list), then, by keyword, the attributes it names as keyword-only parameters.
It returns one array, or a tuple with one per output.

Signature:   "a: T, rest: N * T, any: list(Tin), handle: resource, ref: Ref(T), axis: Tidx[0] -> out: T"
             (the brackets hold the rank: one number, or "1+" for at least 1, "1-" for at most 1; or the
             dimensions, "[n,4]" or "[2,]": numbers, names of dimensions that must be equal, and "_" for any)
Attributes:  "T: number; N: int >= 1; transpose_a: bool = false; Tidx: index = int32; padding: string"
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from tensorfleet.base import dtypes, index
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape

if TYPE_CHECKING:
    from tensorfleet.graph.indexed_slices import IndexedSlices
    from tensorfleet.graph.operation import Operation, Tensor

K = TypeVar("K", bound=Callable[..., Any])
#: The gradient of one input of an operation; None where nothing flows.
Gradient: TypeAlias = "Tensor | IndexedSlices | None"
#: Called with an operation and the gradients of its outputs; gives one for each input, or the only one.
GradientFunction: TypeAlias = "Callable[..., Gradient | Sequence[Gradient]]"
#: Gives the static shapes of the outputs of an operation; one alone is that of all.
ShapeFunction: TypeAlias = "Callable[[Operation], TensorShape | Sequence[TensorShape]]"
G = TypeVar("G", bound="GradientFunction")

# Named sets of element types, for attributes such as "T: number".
_F = ("bfloat16", "half", "float", "double")
_I = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
TYPE_SETS: dict[str, tuple[str, ...]] = {
    "floating": _F,
    "inexact": (*_F, "complex64", "complex128"),
    "integer": _I,
    "real": (*_F, *_I),
    "number": (*_F, *_I, "complex64", "complex128"),
    "summable": (*_F, *_I, "complex64", "complex128", "variant"),
    "index": ("int32", "int64"),
}


@dataclass(frozen=True)
class Arg:
    """One input or output of an op: a tensor, `number` tensors of one type, or a list of any types."""

    name: str
    dtype: DType | None = None
    type_attr: str = ""
    number_attr: str = ""
    type_list_attr: str = ""
    is_ref: bool = False
    #: the lowest and the highest rank that a tensor may have here
    ranks: tuple[int, float] | None = None
    #: what is told of its dimensions: numbers, names of dimensions that are equal, and "_"
    dims: tuple[int | str, ...] = ()


@dataclass(frozen=True)
class Attr:
    """One attribute of an op: its kind, its default (or `REQUIRED`), and its allowed values."""

    name: str
    kind: str
    default: Any
    allowed: frozenset[DType] | tuple[bytes, ...] | None = None
    minimum: int | None = None


REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()


@dataclass
class OpSpec:
    """Everything known about one op type."""

    name: str
    inputs: tuple[Arg, ...]
    outputs: tuple[Arg, ...]
    attrs: dict[str, Attr]
    kernel: Callable[..., Any]
    kernel_attrs: tuple[str, ...]
    shape: ShapeFunction | None = None
    #: inputs of a limited rank: (position, lowest, highest)
    ranked: tuple[tuple[int, int, float], ...] = ()
    #: inputs whose dimensions are told: (position, dimensions)
    sized: tuple[tuple[int, tuple[int | str, ...]], ...] = ()
    #: never traced: runs in Python on numpy values, receiving a `HostContext` instead of `xp`
    host: bool = False
    #: of an op that is traced otherwise: says of one operation that XLA cannot give what TensorFlow gives
    in_numpy: Callable[[Operation], bool] | None = None
    #: a host op that may wait (a dequeue): it gets a thread of its own
    blocks: bool = False
    #: inputs (by position) whose variables the kernel rewrites; it returns their new values first
    updates: tuple[int, ...] = ()
    #: inputs (by position) that are resource handles whose variable's value the kernel wants instead
    reads: tuple[int, ...] = ()
    #: an updating op that does not look at the old value
    overwrites: bool = False
    #: of an updating op whose every element depends on the same element of each array it is given: what changes numpy
    #: arrays in place, as the kernel would; it is given the op before them
    elementwise: Callable[..., None] | None = None
    #: stands for a variable: its output is a reference or a handle, not a value
    variable: bool = False
    #: updates only the rows that input `rows` names, in place (see kernels/rows.py)
    rows: int | None = None
    #: inputs (by position) whose *values* shape the result, so they must be known while tracing
    static: frozenset[int] = frozenset()
    #: receives the state of a random stream as first argument after `xp`
    rng: Callable[..., Any] | None = None
    #: has effects or state: is never folded, and two of them are never merged into one
    stateful: bool = False
    #: numpy runs it far slower than XLA: compile at the first run
    heavy: bool = False
    #: XLA takes as long to compile it as so many ordinary ops: numpy runs it longer first
    compiles_like: int = 1
    #: a host op whose kernel takes strings also as `ops.packed_strings.Strings`, and may give them so
    packed: bool = False
    #: the kernel of several at once on the host, which gets the ops and their inputs as `kernels.lanes.Lanes`, and gives
    #: their outputs so; or None where it has no shorter way for these
    joined: Callable[..., Any] | None = None
    #: the input (by position) whose elements the op only moves, whatever they are
    moves: int | None = None
    #: the kernel takes `check=` to report data-dependent errors (see runtime/checks)
    checks: bool = False
    #: what TensorFlow's kernel says of an input (by position) of another rank than is told, `{}` for its shape
    words: dict[int, str] = field(default_factory=dict)
    #: the version of graphs from which on it is not made any more, and what TensorFlow says to that
    removed: tuple[int, str] | None = None
    #: sample arguments for the table-driven tests
    examples: Sequence[Any] = ()
    #: one of the library's own ops, rather than one that only serves tests
    listed: bool = True
    gradient: GradientFunction | None = field(default=None, repr=False)
    differentiable: bool = True

    @property
    def pure(self) -> bool:
        """Whether the outputs depend on nothing but the inputs, and nothing else happens."""
        return not (self.host or self.updates or self.reads or self.rng or self.stateful)


_TABLE: dict[str, OpSpec] = {}


def op(
    name: str,
    signature: str,
    attrs: str = "",
    *,
    shape: ShapeFunction | None = None,
    static: Sequence[str] = (),
    updates: Sequence[str] = (),
    reads: Sequence[str] = (),
    rows: str | None = None,
    moves: str | None = None,
    words: dict[str, str] | None = None,
    examples: Sequence[Any] = (),
    **flags: Any,
) -> Callable[[K], K]:
    """Registers the decorated function as the kernel of op `name`. See the module's docstring."""
    inputs, outputs = parse_signature(signature)
    parsed = parse_attrs(attrs)
    order = {a.name: i for i, a in enumerate(inputs)}

    def register(kernel: K) -> K:
        if name in _TABLE:
            raise ValueError(f"Op {name!r} is registered twice; rename or remove one of the blocks.")
        code = inspect.unwrap(kernel).__code__
        n = code.co_argcount
        wanted = tuple(a for a in code.co_varnames[n : n + code.co_kwonlyargcount] if a != "check")
        _TABLE[name] = OpSpec(
            name,
            inputs,
            outputs,
            parsed,
            kernel,
            wanted,
            shape,
            *_limits(inputs),
            static=frozenset(order[s] for s in static),
            updates=tuple(order[u] for u in updates),
            reads=tuple(order[r] for r in reads),
            rows=None if rows is None else order[rows],
            moves=None if moves is None else order[moves],
            words={order[name]: text for name, text in (words or {}).items()},
            checks="check" in code.co_varnames[n : n + code.co_kwonlyargcount],
            examples=examples,
            **flags,
        )
        return kernel

    return register


def get(name: str) -> OpSpec:
    """The spec of an op type; ValueError when there is none."""
    spec = find(name)
    if spec is None:
        raise ValueError(
            f"Op type not registered '{name}' in this build of TensorFleet; docs/compatibility.md lists "
            "what is supported."
        )
    return spec


def find(name: str) -> OpSpec | None:
    """The spec of an op type, or None."""
    index.load("op", name)
    return _TABLE.get(name)


def all_ops() -> dict[str, OpSpec]:
    """The library's ops, by op type."""
    index.load_all("op")
    return {name: spec for name, spec in _TABLE.items() if spec.listed}


def gradient(*names: str) -> Callable[[G], G]:
    """Registers the decorated `f(op, *output_grads)` as the gradient of these op types."""

    def register(f: G) -> G:
        for name in names:
            spec = get(name)
            if spec.gradient is not None:
                raise ValueError(f"Op {name!r} has a gradient already.")
            spec.gradient = f
        return f

    return register


def not_differentiable(*names: str) -> None:
    """Declares that no gradient flows through these op types (`tf.gradients` gives None)."""
    for name in names:
        get(name).differentiable = False


# Gradients that users register under names of their own, for `gradient_override_map`.
_NAMED_GRADIENTS: dict[str, GradientFunction | None] = {}


class RegisterGradient:
    """Decorator: makes a function the gradient of an op type, or of a name used in an override map."""

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: G) -> G:
        """Registers `f` and returns it; KeyError if the name has a gradient."""
        spec = find(self._op_type)
        if self._op_type in _NAMED_GRADIENTS or (spec is not None and spec.gradient is not None):
            raise KeyError(f"Registering two gradient with name '{self._op_type}'!")
        _NAMED_GRADIENTS[self._op_type] = f
        return f


def NotDifferentiable(op_type: str) -> None:
    """Declares that ops of this type have no gradient; gradients through them are None."""
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    _NAMED_GRADIENTS[op_type] = None


def named_gradient(name: str) -> GradientFunction | None:
    """The gradient registered under a name, by the user or with an op type; LookupError when there is none."""
    if name in _NAMED_GRADIENTS:
        return _NAMED_GRADIENTS[name]
    spec = find(name)
    if spec is None or spec.gradient is None:
        raise LookupError(f"No gradient defined for operation type '{name}' (use tf.RegisterGradient).")
    return spec.gradient


def has_named_gradient(name: str) -> bool:
    """Whether the user registered (or denied) a gradient under this name."""
    return name in _NAMED_GRADIENTS


# -- parsing -----------------------------------------------------------------------------------------

_DTYPE_NAMES = {*_F, *_I, "complex64", "complex128", "bool", "string", "resource", "variant"}
_DTYPE_NAMES |= {"qint8", "quint8", "qint16", "quint16", "qint32"}


@cache
def parse_signature(text: str) -> tuple[tuple[Arg, ...], tuple[Arg, ...]]:
    """Reads "a: T, b: N * T -> c: T" into its input and output arguments."""
    left, _, right = text.partition("->")
    return tuple(map(_arg, _split(left, ","))), tuple(map(_arg, _split(right, ",")))


def _split(text: str, separator: str) -> list[str]:
    parts = re.split(rf"{separator}(?![^[]*\])", text)
    return [part.strip() for part in parts if part.strip()]


def _arg(text: str) -> Arg:
    name, _, kind = (part.strip() for part in text.partition(":"))
    is_ref = "Ref(" in kind
    if kind.startswith("Ref(list("):
        kind = kind[4:-1]
    elif is_ref:
        kind = kind.replace("Ref(", "").rstrip(")")
    if kind.startswith("list("):
        return Arg(name, type_list_attr=kind[5:-1], is_ref=is_ref)
    kind, _, sizes = kind.rstrip("]").partition("[")
    dims = _dims(sizes)
    ranks = (len(dims), len(dims)) if dims else _ranks(sizes) if sizes else None
    number = ""
    if "*" in kind:
        number, kind = (part.strip() for part in kind.split("*"))
    if kind in _DTYPE_NAMES:
        return Arg(name, dtypes.as_dtype(kind), number_attr=number, is_ref=is_ref, ranks=ranks, dims=dims)
    return Arg(name, type_attr=kind, number_attr=number, is_ref=is_ref, ranks=ranks, dims=dims)


def _dims(text: str) -> tuple[int | str, ...]:
    """The dimensions of "n,4" or "2,"; none when the text tells a rank."""
    if re.fullmatch(r"\d*[+-]?", text):
        return ()
    return tuple(int(d) if d.isdigit() else d for d in _split(text, ","))


def _ranks(text: str) -> tuple[int, float]:
    """The lowest and the highest of "1" (no other), "1+" (or more) and "1-" (or less)."""
    rank = int(text.rstrip("+-"))
    return 0 if text.endswith("-") else rank, math.inf if text.endswith("+") else rank


def _limits(
    inputs: tuple[Arg, ...],
) -> tuple[tuple[tuple[int, int, float], ...], tuple[tuple[int, tuple[int | str, ...]], ...]]:
    """`ranked` and `sized` of an op; inputs behind a list are counted from the end."""
    ranked, sized = [], []
    for i, arg in enumerate(inputs):
        # The length of a list is known only for an operation.
        behind = any(a.number_attr or a.type_list_attr for a in inputs[:i])
        position = i - len(inputs) if behind else i
        if arg.ranks is not None:
            ranked.append((position, *arg.ranks))
        if arg.dims:
            sized.append((position, arg.dims))
    return tuple(ranked), tuple(sized)


@cache
def parse_attrs(text: str) -> dict[str, Attr]:
    """Reads "T: number; axis: int = 0" into attributes. The result is cached: do not change it."""
    result = {}
    for part in _split(text, ";"):
        name, _, rest = (p.strip() for p in part.partition(":"))
        kind, *default = (p.strip() for p in re.split(r"(?<!>)=", rest, maxsplit=1))
        result[name] = _attr(name, kind, default[0] if default else None)
    return result


def _attr(name: str, kind: str, default: str | None) -> Attr:
    allowed: frozenset[DType] | tuple[bytes, ...] | None = None
    kind, _, least = (part.strip() for part in kind.partition(">="))
    minimum = int(least) if least else None
    inner = re.fullmatch(r"list\((.*)\)", kind)
    base = inner.group(1) if inner else kind
    if base.startswith("{"):
        allowed = frozenset(dtypes.as_dtype(t.strip()) for t in base[1:-1].split(","))
        base = "type"
    elif base in TYPE_SETS:
        allowed = frozenset(dtypes.as_dtype(t) for t in TYPE_SETS[base])
        base = "type"
    elif base.startswith("string("):
        allowed = tuple(t.strip().encode() for t in base[7:-1].split("|"))
        base = "string"
    kind = f"list({base})" if inner else base
    value = REQUIRED if default is None else _default(kind, default)
    return Attr(name, kind, value, allowed, minimum)


def _default(kind: str, text: str) -> Any:
    if kind.startswith("list("):
        inner = kind[5:-1]
        return [_default(inner, t) for t in _split(text.strip("[]"), ",")]
    if kind == "bool":
        return text == "true"
    if kind == "int":
        return int(text)
    if kind == "float":
        return float(np.float32(text))
    if kind == "string":
        return text.strip("'\"").encode()
    if kind == "type":
        return dtypes.as_dtype(text)
    if kind == "shape":
        return TensorShape(None if text == "unknown" else [int(d) for d in re.findall(r"-?\d+", text)])
    raise ValueError(f"No default possible for attribute kind {kind!r}")
