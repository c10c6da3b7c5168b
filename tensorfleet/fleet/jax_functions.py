"""`tf.fleet.jax_op`: any function of JAX as an operation of the graph."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.fleet.checking import whole_number
from tensorfleet.fleet.jax_trees import PyTree, flatten, unflatten, written_path
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.kernels.exported_functions import ArrayType, TracedFunction, split_sizes
from tensorfleet.ops.control.jax_call import call_traced
from tensorfleet.runtime.devices import load_jax

_MAX_LISTED_ARGUMENTS = 12
_WIDE = ("int64", "uint64", "float64", "complex128")


@export("fleet.jax_op")
def jax_op(
    fn: Callable[..., PyTree],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    shapes: Sequence[str | None] | None = None,
    vjp_order: int = 0,
    name: str | None = None,
) -> Callable[..., PyTree]:
    """A function of JAX, to be called with tensors: each call is an operation of the graph.

    `fn` is any function that `jax.jit` takes. Its arguments and results are arrays or nested structures of them
    (pytrees). It is traced once for the types of the tensors and exported as StableHLO. The operation becomes part of
    the XLA program around it, has gradients of any order, and may be on any task. See docs/jax.md.

    Static arguments are passed to `fn` as they are. `shapes` has a text for each tensor, such as "batch, _", that names
    the sizes that only a run knows; "_" takes the size of the tensor. By default all unknown first sizes are the same.
    `vjp_order` gradients travel with the graph, for a process that imports it and has not `fn`.
    """
    if not callable(fn):
        raise TypeError(f"fn must be a function of JAX, not {fn!r}.")
    return _JaxOp(fn, static_argnums, static_argnames, shapes, vjp_order, name)


class _JaxOp:
    """What `jax_op` returns."""

    def __init__(
        self,
        fn: Callable[..., PyTree],
        static_argnums: int | Sequence[int],
        static_argnames: str | Sequence[str],
        shapes: Sequence[str | None] | None,
        vjp_order: int,
        name: str | None,
    ) -> None:
        self._fn = fn
        self._numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self._names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        self._shapes = shapes
        self._orders = whole_number("vjp_order", vjp_order, 0)
        self.__name__ = _op_name(name or str(getattr(fn, "__name__", type(fn).__name__)))
        self.__doc__ = fn.__doc__
        try:
            self._parameters = list(inspect.signature(fn).parameters.values())
        except (TypeError, ValueError):  # of a function in C
            self._parameters = []
        self._traced: dict[Hashable, tuple[TracedFunction, Any]] = {}

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Adds the operation for these tensors to the graph; its results have the structure of `fn`'s."""
        load_jax()
        static, args, kwargs = self._divided(args, kwargs)
        leaves, structure = flatten((args, kwargs))
        labels = [self._label(path) for path, _ in leaves]
        given = [
            _as_tensor(label, leaf, self.__name__) for label, (_, leaf) in zip(labels, leaves, strict=True)
        ]
        types = self._types(labels, given)
        key = (structure, tuple(types), tuple(static.items()))
        if key not in self._traced:
            self._traced[key] = self._trace(static, structure, labels, types)
        traced, results = self._traced[key]
        made = call_traced(traced, given, get_default_graph(), self._orders, self.__name__)
        return unflatten(results, made)

    def _divided(
        self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]
    ) -> tuple[dict[int | str, Hashable], tuple[PyTree, ...], dict[str, PyTree]]:
        """The static arguments by position or name, and the others; None has no leaves and keeps a place."""
        positions = {n % len(args) if n < 0 and args else n for n in self._numbers}
        for i, parameter in enumerate(self._parameters[: len(args)]):
            if parameter.name in self._names and parameter.kind is not parameter.VAR_POSITIONAL:
                positions.add(i)
        by_number = {self._parameters[n].name for n in self._numbers if n < len(self._parameters)}
        static: dict[int | str, Hashable] = {i: args[i] for i in sorted(positions) if i < len(args)}
        static |= {k: v for k, v in kwargs.items() if k in self._names or k in by_number}
        for which, value in static.items():
            try:
                hash(value)
            except TypeError:
                label = self._parameters[which].name if isinstance(which, int) and self._parameters else which
                raise TypeError(
                    f"The static argument {label!r} of '{self.__name__}' must be hashable, as a number, a string or a "
                    f"tuple is, not {value!r}."
                ) from None
        rest = tuple(None if i in static else value for i, value in enumerate(args))
        return static, rest, {k: v for k, v in kwargs.items() if k not in static}

    def _label(self, path: Sequence[Any]) -> str:
        """What an argument is called: "params['dense']['kernel']"."""
        which, first, *rest = path
        if which.idx == 0:
            first = self._positional(first.idx)
        else:
            first = first.key
        return f"{first}{written_path(rest)}"

    def _positional(self, i: int) -> str:
        plain = [p for p in self._parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return plain[i].name if i < len(plain) else f"args[{i}]"

    def _types(self, labels: Sequence[str], given: Sequence[Tensor]) -> list[ArrayType]:
        told = self._shapes
        if told is not None and (isinstance(told, str) or len(told) != len(given)):
            raise ValueError(
                f"shapes of '{self.__name__}' must be {len(given)} texts, one for each tensor "
                f"({', '.join(labels[:_MAX_LISTED_ARGUMENTS])}), not {told!r}."
            )
        texts = told or [None] * len(given)
        return [
            ArrayType(t.dtype.base_dtype.name, self._sizes(label, t, i, text))
            for i, (label, t, text) in enumerate(zip(labels, given, texts, strict=True))
        ]

    def _sizes(self, label: str, tensor: Tensor, number: int, told: str | None) -> str:
        """The sizes of a tensor as JAX writes them."""
        if tensor.shape.rank is None:
            raise ValueError(
                f"{label} of '{self.__name__}' has an unknown number of dimensions. Set them: "
                "tensor.set_shape([None, 64])."
            )
        known = tensor.shape.as_list()
        if told is None:
            unknown = ["b" if axis == 0 else f"d{number}_{axis}" for axis in range(len(known))]
            return ", ".join(n if d is None else str(d) for d, n in zip(known, unknown, strict=True))
        dims = split_sizes(told)
        if len(dims) != len(known) or any(d == "_" and n is None for d, n in zip(dims, known, strict=False)):
            raise ValueError(
                f"shapes says [{told}] of {label} of '{self.__name__}', whose shape is {tensor.shape}. Give one size for "
                "each dimension, with a name for each that is unknown: 'batch, _'."
            )
        return ", ".join(str(n) if d == "_" else d for d, n in zip(dims, known, strict=True))

    def _trace(
        self,
        static: dict[int | str, Hashable],
        structure: Any,
        labels: Sequence[str],
        types: Sequence[ArrayType],
    ) -> tuple[TracedFunction, Any]:
        results: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            args, kwargs = unflatten(structure, values)
            full = [static.get(i, value) for i, value in enumerate(args)]
            named = {k: v for k, v in static.items() if isinstance(k, str)}
            leaves, made = flatten(self._fn(*full, **kwargs, **named))
            results[:] = [made]
            return [leaf for _, leaf in leaves]

        return trace_flat(flat, self.__name__, labels, types), results[0]


def trace_flat(
    function: Callable[..., Sequence[Any]], name: str, labels: Sequence[str], types: Sequence[ArrayType]
) -> TracedFunction:
    """Traces and exports a function of arrays in a row; the error of one that cannot be says why."""
    try:
        return TracedFunction(function, name, labels, types, any(kind.dtype in _WIDE for kind in types))
    except Exception as e:  # whatever the user's function raises, with what it was called with
        raise _explained(name, e, labels, types) from e


def _op_name(name: str) -> str:
    """A name for operations, of that of a function."""
    clean = re.sub(r"[^A-Za-z0-9_.\-]+", "_", name).strip("_")
    return clean if clean and clean != "lambda" else "JaxCall"


def _as_tensor(label: str, leaf: object, name: str) -> Tensor:
    jax, _ = load_jax()
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        raise TypeError(
            f"{label} of '{name}' is a typed key of JAX, which no tensor holds. Pass jax.random.key_data(key), a uint32 "
            "tensor, and make a key of it in the function: jax.random.wrap_key_data(data)."
        )
    if callable(leaf) or isinstance(leaf, (str, bytes)):
        raise TypeError(
            f"{label} of '{name}' is {leaf!r}, which is no tensor. Pass it as a static argument: "
            f"static_argnames=({re.split(r'[.[]', label)[0]!r},)."
        )
    try:
        tensor = to_tensor(leaf)
    except (TypeError, ValueError) as e:
        raise TypeError(
            f"{label} of '{name}' is {type(leaf).__name__}, which does not convert to a tensor ({e}). Make it an "
            "array, or a static argument."
        ) from e
    try:
        ArrayType(tensor.dtype.base_dtype.name, "").check()
    except TypeError as e:
        raise TypeError(f"{label} of '{name}': {e}") from None
    return tensor


def _explained(
    name: str, error: Exception, labels: Sequence[str], types: Sequence[ArrayType]
) -> ValueError | TypeError | errors.OpError:
    """The error of a function that cannot be traced or exported: what was tried, why it failed, what to do."""
    listed = [f"{label}: {kind.dtype}[{kind.sizes}]" for label, kind in zip(labels, types, strict=True)]
    if len(listed) > _MAX_LISTED_ARGUMENTS:
        listed[_MAX_LISTED_ARGUMENTS:] = [f"and {len(listed) - _MAX_LISTED_ARGUMENTS} more"]
    reason, advice = _reason(error, labels, types)
    text = f"The JAX function '{name}' cannot become an op for ({', '.join(listed)}): {reason}\n  {advice}"
    return TypeError(text) if isinstance(error, TypeError) else ValueError(text)


def _reason(error: Exception, labels: Sequence[str], types: Sequence[ArrayType]) -> tuple[str, str]:
    """Why a trace failed, and what to do."""
    jax, _ = load_jax()
    text = str(error).strip()
    first = text.split("\n\n")[0][:600]
    if isinstance(error, errors.OpError):
        return first, "Write it with functions that XLA itself computes."
    if "callback" in text and isinstance(error, NotImplementedError):
        return (
            "it calls back into Python (jax.pure_callback, jax.experimental.io_callback, jax.debug.print), and no Python "
            "travels to the task that runs it.",
            "Leave the callback out, or make it an op of its own: tf.py_func.",
        )
    if isinstance(error, jax.errors.UnexpectedTracerError) or "Too many leaves for PyTreeDef" in text:
        return (
            "it uses arrays that an earlier call left in a Python variable.",
            "Return them as results, and pass them as arguments: see jax.errors.UnexpectedTracerError.",
        )
    if isinstance(error, (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)):
        which = re.search(r"argument values\[(\d+)\]", text)
        label = labels[int(which[1])] if which else "an argument"
        return (
            f"{text.splitlines()[0]} It depends on the value of {label}, which only a run knows.",
            "Use jax.numpy in place of numpy, and jax.lax.cond in place of if; or make a plain number static: "
            "static_argnames.",
        )
    if "InconclusiveDimension" in type(error).__name__ or "symbolic" in text.lower():
        return first, (
            "A size that only a run knows decides there. Give the tensors static shapes, or relate the sizes: "
            "shapes=('b, _', 'b')."
        )
    if "PRNG" in text or "key" in text.lower():
        wrong = [
            f"{label} is {kind.dtype}[{kind.sizes}]"
            for label, kind in zip(labels, types, strict=True)
            if kind.dims() == ["2"] and kind.dtype != "uint32"
        ]
        hint = f" ({', '.join(wrong)})" if wrong else ""
        return (
            first,
            f"A key is a uint32 tensor of shape [2]{hint}, as jax.random.key_data(jax.random.key(0)) is.",
        )
    return f"{type(error).__name__}: {first}", "Try jax.jit(fn) on arrays of these shapes."
