"""Functions of JAX as StableHLO: exporting them, their gradients, and calling what was exported elsewhere.

An `ExportedFunction` is data and travels in a graph. A `TracedFunction` has the Python function too. It exists only in
the process that built the graph, and gives the gradients.
"""

from __future__ import annotations

import dataclasses
import re
import threading
import uuid
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.kernels.stablehlo import CheckedProgram, Sizes, read_program, write_program

if TYPE_CHECKING:
    from jax import export as jax_export

    from tensorfleet.base.types import Array

# The sizes of an array as text: numbers, names, and what JAX makes of them ("2*b + 1", "max(b, 3)").
_SIZES = re.compile(r"[\w +\-*,()]{0,400}")
_NAME = re.compile(r"[A-Za-z_]\w*")
# What StableHLO calls element types.
_ELEMENTS = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "ui8", "uint16": "ui16", "uint32": "ui32", "uint64": "ui64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
}  # fmt: skip


@dataclass(frozen=True)
class ArrayType:
    """The type of an argument or a result: its elements, and its sizes as JAX writes them ("b, 64")."""

    dtype: str
    sizes: str

    @property
    def moves(self) -> bool:
        """Whether it has gradients."""
        return dtypes.as_dtype(self.dtype).is_floating or dtypes.as_dtype(self.dtype).is_complex

    def check(self) -> None:
        """Raises TypeError for elements that JAX's arrays do not have."""
        if self.dtype not in _ELEMENTS:
            raise TypeError(f"JAX has no arrays of {self.dtype}. Its elements must be numbers or booleans.")

    def dims(self) -> list[str]:
        """The size of each dimension, a number, a name or an expression."""
        return split_sizes(self.sizes)


def split_sizes(text: str) -> list[str]:
    """The parts of "b, max(b, 3), 4" between the commas that are in no brackets."""
    parts = re.split(r",(?![^()]*\))", text)
    return [part.strip() for part in parts if part.strip()]


@dataclass(frozen=True)
class ExportedFunction:
    """A function that any process with XLA can call, as the attributes of an operation say it."""

    name: str
    #: what each argument is called in messages: "params['dense']['kernel']"
    labels: tuple[str, ...]
    arguments: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    #: the program, as `stablehlo.read_program` reads it
    module: bytes
    #: the arguments that the module takes; the others have no influence
    kept: tuple[int, ...]
    #: whether sizes are known only when it is called
    refined: bool
    version: int
    #: tells apart functions that compute the same and have different gradients
    identity: str

    @cached_property
    def program(self) -> CheckedProgram:
        """The checked program; InvalidArgumentError if it is not what this describes."""
        for one in (*self.arguments, *self.results):
            if _SIZES.fullmatch(one.sizes) is None or one.dtype not in _ELEMENTS:
                raise _malformed(self.name, f"the type {one.dtype}[{one.sizes[:80]}] of an array")
        if len(self.labels) != len(self.arguments):
            raise _malformed(self.name, f"{len(self.labels)} labels of {len(self.arguments)} arguments")
        if list(self.kept) != sorted({i for i in self.kept if 0 <= i < len(self.arguments)}):
            raise _malformed(self.name, f"the list {list(self.kept)[:16]} of used arguments")
        program = read_program(self.module)
        wanted = [self.arguments[i] for i in self.kept]
        for what, told, types in (
            ("arguments", wanted, program.arguments),
            ("results", self.results, program.results),
        ):
            if len(told) != len(types) or not all(map(_agree, told, types)):
                raise _malformed(self.name, f"other {what} than its program")
        return program

    def call(self, *values: Array) -> tuple[Array, ...]:
        """Calls it on arrays or, while a program is traced, on tracers."""
        self.check_shapes([tuple(np.shape(v)) for v in values])
        call: Callable[..., Sequence[Array]] = _callable(self).call
        return tuple(call(*values))

    def call_now(self, *values: Array) -> tuple[Array, ...]:
        """Calls it on NumPy arrays at once, also while something else is traced."""
        import jax

        self.check_shapes([tuple(np.shape(v)) for v in values])
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            return tuple(map(np.asarray, _jitted(self)(*values)))

    def check_shapes(self, shapes: Sequence[tuple[int | None, ...] | None]) -> dict[str, int]:
        """The sizes that names stand for in these shapes; InvalidArgumentError for shapes that cannot be."""
        known: dict[str, int] = {}
        whose: dict[str, str] = {}
        for label, kind, shape in zip(self.labels, self.arguments, shapes, strict=True):
            if shape is None:
                continue
            dims = kind.dims()
            if len(dims) != len(shape):
                raise _other_shape(self, label, kind, shape, f"{len(dims)} dimensions")
            for dim, size in zip(dims, shape, strict=True):
                if size is None:
                    continue
                if dim.isdigit() and int(dim) != size:
                    raise _other_shape(self, label, kind, shape, f"{dim} where it has {size}")
                if _NAME.fullmatch(dim):
                    if known.setdefault(dim, size) != size:
                        hint = f"{dim} = {known[dim]}, as {whose[dim]} has"
                        raise _other_shape(self, label, kind, shape, hint)
                    if size == 0:
                        raise _other_shape(self, label, kind, shape, f"{dim} of 1 or more")
                    whose.setdefault(dim, label)
        return known

    def result_shapes(self, shapes: Sequence[tuple[int | None, ...] | None]) -> list[Sizes]:
        """The shapes of the results, as far as they follow from those of the arguments."""
        known = self.check_shapes(shapes)
        return [
            tuple([int(d) if d.isdigit() else known.get(d) for d in kind.dims()]) for kind in self.results
        ]


def _agree(told: ArrayType, kind: tuple[Sizes, str]) -> bool:
    """Whether a description says the same of an array as the type in the program."""
    sizes, element = kind
    dims = told.dims()
    if _ELEMENTS[told.dtype] != element or len(dims) != len(sizes):
        return False
    return all(
        (size is None) == (not dim.isdigit()) and (size is None or size == int(dim))
        for dim, size in zip(dims, sizes, strict=True)
    )


def _malformed(name: str, what: str) -> errors.InvalidArgumentError:
    return errors.invalid(
        f"The exported function {name[:80]!r} has {what}. It was changed on its way: export it again."
    )


def _other_shape(
    function: ExportedFunction, label: str, kind: ArrayType, shape: Sequence[int | None], wanted: str
) -> errors.InvalidArgumentError:
    given = ", ".join("?" if d is None else str(d) for d in shape)
    return errors.invalid(
        f"{label} of the JAX function '{function.name}' has shape [{given}]; the function was traced for "
        f"[{kind.sizes}], which wants {wanted}. Feed that, or build the op with a placeholder whose size is None there."
    )


@lru_cache(maxsize=256)
def _callable(function: ExportedFunction) -> jax_export.Exported:
    """JAX's own form of an exported function, made by replacing the parts of another."""
    import jax
    from jax import export

    scope = export.SymbolicScope()
    arguments, results = (
        tuple(_abstract(kind, scope) for kind in kinds) for kinds in (function.arguments, function.results)
    )
    template = _template()
    unsharded: dict[str, Any] = {
        field.name: (None,) * len(arguments if "in_" in field.name else results)
        for field in dataclasses.fields(template)
        if "sharding" in field.name
    }
    return dataclasses.replace(
        template,
        fun_name=function.name,
        in_tree=jax.tree_util.tree_structure((tuple(arguments), {})),
        in_avals=arguments,
        out_tree=jax.tree_util.tree_structure(tuple(results)),
        out_avals=results,
        mlir_module_serialized=function.program.artifact,
        module_kept_var_idx=function.kept,
        uses_global_constants=function.refined,
        calling_convention_version=function.version,
        disabled_safety_checks=(export.DisabledSafetyCheck.platform(),),
        **unsharded,
    )


def _abstract(kind: ArrayType, scope: Any) -> Any:
    import jax
    from jax import export

    try:
        shape = export.symbolic_shape(kind.sizes, scope=scope)
    except Exception:  # JAX's parser has several
        raise errors.invalid(
            f"The sizes [{kind.sizes[:80]}] of an array in an exported function mean nothing: export it again."
        ) from None
    return jax.core.ShapedArray(shape, np.dtype(dtypes.as_dtype(kind.dtype).as_numpy_dtype))


@lru_cache(maxsize=1)
def _template() -> jax_export.Exported:
    import jax
    from jax import export

    return export.export(jax.jit(lambda: ()), platforms=("cpu",))()


@lru_cache(maxsize=256)
def _jitted(function: ExportedFunction) -> Callable[..., Sequence[Array]]:
    import jax

    jitted: Callable[..., Sequence[Array]] = jax.jit(function.call)
    return jitted


# -- exporting ---------------------------------------------------------------------------------------


class TracedFunction:
    """A function of JAX over arrays in a row, with what was exported of it.

    `wide` turns JAX's 64-bit types on while it is traced.
    """

    def __init__(
        self,
        function: Callable[..., Sequence[Any]],
        name: str,
        labels: Sequence[str],
        arguments: Sequence[ArrayType],
        wide: bool,
    ) -> None:
        self._function = function
        self._wide = wide
        self.exported = self._export(name, tuple(labels), tuple(arguments))
        self._gradient: TracedFunction | None = None
        self._lock = threading.Lock()
        _traced[self.exported] = self

    def _export(
        self, name: str, labels: tuple[str, ...], arguments: tuple[ArrayType, ...]
    ) -> ExportedFunction:
        import jax
        from jax import export

        scope = export.SymbolicScope()
        with jax.enable_x64(self._wide):
            struct: Any = jax.ShapeDtypeStruct  # it has no types
            avals = [_abstract(a, scope) for a in arguments]
            given = [struct(aval.shape, aval.dtype) for aval in avals]
            made = export.export(jax.jit(self._function), platforms=("cpu",))(*given)
        results = [
            ArrayType(_type_name(a.dtype, f"result {i} of '{name}'"), _written(a.shape))
            for i, a in enumerate(made.out_avals)
        ]
        exported = ExportedFunction(
            name,
            labels,
            arguments,
            tuple(results),
            write_program(made.mlir_module_serialized),
            tuple(made.module_kept_var_idx),
            made.uses_global_constants,
            made.calling_convention_version,
            uuid.uuid4().hex,
        )
        assert exported.program  # refused here rather than on the task that gets it
        return exported

    def gradient(self) -> TracedFunction:
        """The function from the arguments and the gradients of the results to the gradients of the arguments."""
        with self._lock:
            if self._gradient is None:
                self._gradient = self._derived()
            return self._gradient

    def _derived(self) -> TracedFunction:
        import jax

        exported, function = self.exported, self._function
        moving = [i for i, a in enumerate(exported.arguments) if a.moves]
        floats = [i for i, a in enumerate(exported.results) if a.moves]
        count = len(exported.arguments)

        def gradient(*values: Array) -> tuple[Array, ...]:
            given = list(values[:count])

            def forward(*some: Array) -> list[Array]:
                for i, value in zip(moving, some, strict=True):
                    given[i] = value
                results = function(*given)
                return [results[i] for i in floats]

            _, back = jax.vjp(forward, *[values[i] for i in moving])
            # TensorFlow's gradient of a complex number is the conjugate of JAX's.
            turned = back([_conjugated(v) for v in values[count:]])
            return tuple(map(_conjugated, turned))

        labels = [*exported.labels, *(f"the gradient of result {i}" for i in floats)]
        types = [*exported.arguments, *(exported.results[i] for i in floats)]
        return TracedFunction(gradient, f"{exported.name}_gradient", labels, types, self._wide)


def _conjugated(value: Any) -> Any:
    return value.conj() if np.dtype(value.dtype).kind == "c" else value


def _type_name(dtype: Any, what: str) -> str:
    name = str(np.dtype(dtype).name) if isinstance(dtype, np.dtype) else str(dtype)
    if name not in _ELEMENTS:
        hint = (
            " Return jax.random.key_data(key)." if "key" in name else " Cast it to one of TensorFlow's types."
        )
        raise TypeError(f"{what} has type {name}, which no tensor has.{hint}")
    return name


def _written(shape: Sequence[Any]) -> str:
    return ", ".join(str(d) for d in shape)


# The functions of this process, by their exported form. A graph keeps those that it uses.
_traced: weakref.WeakValueDictionary[ExportedFunction, TracedFunction] = weakref.WeakValueDictionary()
_kept: weakref.WeakKeyDictionary[Hashable, list[TracedFunction]] = weakref.WeakKeyDictionary()


def keep_traced(function: TracedFunction, owner: Hashable) -> None:
    """Keeps a function, with all that it refers to, as long as its owner."""
    _kept.setdefault(owner, []).append(function)


def find_traced(exported: ExportedFunction) -> TracedFunction | None:
    """The function that was exported so in this process, if it is still there."""
    return _traced.get(exported)
