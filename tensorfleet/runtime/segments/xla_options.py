"""The options that XLA compiles with for the CPU: those that help large arrays cost small ones more than they save."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, cast

from tensorfleet.kernels.parallel_for import core_count
from tensorfleet.kernels.processor import has_avx512
from tensorfleet.kernels.stablehlo import CheckedProgram, program_of
from tensorfleet.runtime.devices import lone_cpu

if TYPE_CHECKING:
    from types import ModuleType

    from jax import Device
    from jax.core import ShapedArray
    from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
    from jax.stages import Compiled, Lowered, Traced

    from tensorfleet.base.types import Dims

# XLA's pass that would drop our barriers before it fuses.
_KEEP_BARRIERS = "cse_barrier_expander"
# A loop over fewer elements takes no longer than waking the threads to share it.
_MIN_DIVIDED_ELEMENTS = 1 << 19
_DIVIDE_LOOPS = "cpu-parallel-task-assigner"
# The same for the multiplications of a matrix product or a convolution.
_MIN_SHARED_MULTIPLICATIONS = 12_000_000
# YNN, a library that XLA hands products, convolutions and sums to. Without AVX-512, small products are faster in
# Eigen; small sums always are in XLA's own loops.
_LIBRARY = "xla_cpu_experimental_ynn_fusion_type"
_PRODUCTS_ONLY = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
# Eigen is faster (decision 20) where the result has so many rows, and neither factor is wider than this. It also is in
# a batch of products with so many multiplications each, which the library computes in a single thread, unless the left
# factor has to be transposed.
_EIGEN_MIN_ROWS, _EIGEN_MAX_WIDTH = 16_384, 128
_EIGEN_MIN_BATCH_MULTIPLICATIONS = 1 << 20
# The library's convolutions use one thread each, XLA's own all cores: they are for programs that have them in parts
# (decision 14).
_NO_CONVOLUTIONS = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE"
_EVERYTHING = _NO_CONVOLUTIONS + ",LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION"
# XLA runs no more operations than this side by side. With more cores, its own convolutions are faster.
_MAX_CORES = 4

_unknown: set[str] = set()  # options that this version of XLA does not have


def has_library_convolutions() -> bool:
    """Whether convolutions are worth handing to the library: with AVX-512, where they were measured, and few cores."""
    return has_avx512() and core_count() <= _MAX_CORES and _LIBRARY not in _unknown


def is_large(size: int) -> bool:
    """Whether a program that goes through arrays of so many elements has them divided among threads."""
    return size >= _MIN_DIVIDED_ELEMENTS


def compile_for_cpu(
    jax: ModuleType, traced: Traced, largest: int, owns: bool, in_parts: bool = False
) -> tuple[Compiled | None, Device | None]:
    """Compiles a traced program that goes through arrays of so many elements.

    Returns it with the device it is for, None for the usual one. A program that `owns` arrays, whose memory it uses
    again, stays where they are, and must not be one that `waits_for_itself`. One that has convolutions `in_parts`
    needs the library for them; where that did not take all of them, None is returned in place of the program.
    """
    small = not is_large(largest)
    alone = small and not owns and not in_parts and not _has_large_product(traced.jaxpr)
    alone |= waits_for_itself(traced.jaxpr)  # in one thread it cannot
    lowered, device = _lower(jax, traced, alone)
    options = {_LIBRARY: _EVERYTHING if in_parts else _NO_CONVOLUTIONS}
    if small and not in_parts and not _has_large_product(traced.jaxpr, ("conv_general_dilated",)):
        options[_LIBRARY] = _PRODUCTS_ONLY if has_avx512() else ""
    elif _suits_eigen(traced.jaxpr):
        kinds = options[_LIBRARY].split(",")
        options[_LIBRARY] = ",".join(kind for kind in kinds if kind != _PRODUCTS_ONLY)
    compiled = _compile(lowered, _has_barrier(traced.jaxpr), small, options)
    return None if in_parts and not _is_served(compiled.as_text() or "") else compiled, device


def _is_served(program: str) -> bool:
    """Whether all convolutions with negative padding in a compiled program are the library's."""
    served = set(re.findall(r"calls=(%[\w.-]+)[^\n]*__ynn_fusion", program))
    for computation in program.split("\n}\n"):
        name = re.search(r"^(?:ENTRY )?(%[\w.-]+)", computation, re.MULTILINE)
        cropped = re.search(r" convolution\([^\n]*[ {]pad=[\dx_]*-", computation)
        if cropped and (name is None or name[1] not in served):
            return False
    return True


def compile_loop(
    jax: ModuleType, traced: Traced, on_cpu: bool, buffers: set[Dims]
) -> tuple[Compiled, Device | None]:
    """Compiles a traced loop that has buffers of these shapes, of which an iteration touches one element.

    Returns it with the device it is for, None for the usual one.
    """
    small = _largest(traced.jaxpr, buffers) < _MIN_DIVIDED_ELEMENTS
    lone = on_cpu and ((small and not _has_large_product(traced.jaxpr)) or waits_for_itself(traced.jaxpr))
    lowered, device = _lower(jax, traced, lone)
    return lowered.compile(), device


def _lower(jax: ModuleType, traced: Traced, lone: bool) -> tuple[Lowered, Device | None]:
    """Lowers a program for the calling thread alone, if nothing in it is worth waking other threads for."""
    device = lone_cpu() if lone else None
    if device is None:
        return traced.lower(), None
    with jax.default_device(device):
        return traced.lower(), device


def _largest(jaxpr: Jaxpr | ClosedJaxpr, buffers: set[Dims]) -> int:
    """How many elements the largest array in a program has, not counting buffers of these shapes."""
    arrays = [v.aval for e in _equations(jaxpr) for v in (*e.invars, *e.outvars)]
    sizes = [getattr(a, "size", 0) for a in arrays if getattr(a, "shape", None) not in buffers]
    return max([0, *sizes, *[_largest(inner, buffers) for e in _equations(jaxpr) for inner in _inner(e)]])


# The operations for which JAX calls LAPACK.
_LAPACK = frozenset(
    [
        "cholesky",
        "eig",
        "eigh",
        "geqp3",
        "geqrf",
        "hessenberg",
        "householder_product",
        "lu",
        "qr",
        "schur",
        "svd",
        "triangular_solve",
        "tridiagonal",
        "tridiagonal_solve",
    ]
)


def waits_for_itself(jaxpr: Jaxpr | ClosedJaxpr) -> bool:
    """Whether a program could deadlock in several threads.

    JAX divides batches of matrices among XLA's threads, and the thread that divides one waits for the others. If XLA runs
    several batches side by side, all threads may wait, and none is left to do the work. So a program is safe only if each
    batch needs the result of all before it.
    """
    return _batches(jaxpr) is None


def _batches(jaxpr: Jaxpr | ClosedJaxpr) -> int | None:
    """How many batches for LAPACK a program has, if each needs the one before; None if two could run side by side."""
    before: dict[Any, int] = {}  # behind how many batches a value comes: the last of them needs all others
    count = 0
    for equation in _equations(jaxpr):
        inner = [_batches(one) for one in _inner(equation)]
        exported = _exported(equation)
        if exported is not None:  # nobody knows the order of several
            inner.append(None if exported.batches > 1 else exported.batches)
        if None in inner:
            return None
        behind = max([0, *[before.get(v, 0) for v in equation.invars if not hasattr(v, "val")]])
        if any(inner) or (equation.primitive.name in _LAPACK and _is_batch(equation)):
            if behind < count:
                return None
            behind = count = count + 1
        if behind:
            before.update(dict.fromkeys(equation.outvars, behind))
    return count


def _is_batch(equation: JaxprEqn) -> bool:
    return any(math.prod(_array(v).shape[:-2]) > 1 for v in equation.invars)


_PRODUCTS = ("dot_general", "conv_general_dilated")


def _has_large_product(jaxpr: Jaxpr | ClosedJaxpr, kinds: tuple[str, ...] = _PRODUCTS) -> bool:
    """Whether a product or convolution in a program, or in the loops and branches in it, is worth sharing.

    A call of another library is: only large products and convolutions are handed to one. Those in an exported function
    of JAX are, as JAX itself would share them.
    """
    return any(
        equation.primitive.name == "ffi_call"
        or ((exported := _exported(equation)) is not None and exported.has_products)
        or (equation.primitive.name in kinds and _multiplications(equation) > _MIN_SHARED_MULTIPLICATIONS)
        or any(_has_large_product(inner, kinds) for inner in _inner(equation))
        for equation in _equations(jaxpr)
    )


def _suits_eigen(jaxpr: Jaxpr | ClosedJaxpr) -> bool:
    """Whether more multiplications of a program are in products that Eigen is faster at than in others."""
    better, others = _multiplications_by_library(jaxpr)
    return better > others


def _multiplications_by_library(jaxpr: Jaxpr | ClosedJaxpr) -> tuple[int, int]:
    """How many multiplications a program has in products that Eigen is faster at, and in others."""
    better = others = 0
    for equation in _equations(jaxpr):
        if equation.primitive.name == "dot_general" and _is_high_or_batch(equation):
            better += _multiplications(equation)
        elif equation.primitive.name == "dot_general":
            others += _multiplications(equation)
        for inner in map(_multiplications_by_library, _inner(equation)):
            better, others = better + inner[0], others + inner[1]
    return better, others


def _is_high_or_batch(equation: JaxprEqn) -> bool:
    product, work = _array(equation.outvars[0]), _multiplications(equation)
    batch = math.prod(product.shape[:-2])
    if batch > 1:
        (contracted, _), _ = equation.params["dimension_numbers"]
        by_rows = tuple(contracted) == (_array(equation.invars[0]).ndim - 1,)
        return by_rows and work >= batch * _EIGEN_MIN_BATCH_MULTIPLICATIONS
    is_high = product.ndim == 2 and product.shape[0] >= _EIGEN_MIN_ROWS
    return bool(is_high and product.shape[1] <= _EIGEN_MAX_WIDTH and work <= product.size * _EIGEN_MAX_WIDTH)


def _has_barrier(jaxpr: Jaxpr | ClosedJaxpr) -> bool:
    """Whether there is a barrier in a program, or in the loops and branches in it."""
    return any(
        equation.primitive.name == "optimization_barrier" or any(map(_has_barrier, _inner(equation)))
        for equation in _equations(jaxpr)
    )


def _equations(jaxpr: Jaxpr | ClosedJaxpr) -> list[JaxprEqn]:
    return getattr(jaxpr, "jaxpr", jaxpr).eqns


def _array(value: Var | Literal) -> ShapedArray:
    """The shape of a value; programs of segments have only arrays in them."""
    return cast("ShapedArray", value.aval)


def _exported(equation: JaxprEqn) -> CheckedProgram | None:
    """The facts about the exported function that an equation calls, None if it calls none."""
    if equation.primitive.name != "call_exported":
        return None
    return program_of(equation.params["exported"].mlir_module_serialized)


def _inner(equation: JaxprEqn) -> list[Jaxpr | ClosedJaxpr]:
    """The programs within an equation."""
    given = equation.params.values()
    several = [one for value in given for one in (value if isinstance(value, (tuple, list)) else (value,))]
    return [one for one in several if hasattr(getattr(one, "jaxpr", one), "eqns")]


def _multiplications(equation: JaxprEqn) -> int:
    if equation.primitive.name == "dot_general":
        shape = _array(equation.invars[0]).shape
        (contracted, _), _ = equation.params["dimension_numbers"]
        return int(_array(equation.outvars[0]).size * math.prod(shape[d] for d in contracted))
    if equation.primitive.name == "conv_general_dilated":
        kernel = _array(equation.invars[1])
        filters = kernel.shape[equation.params["dimension_numbers"].rhs_spec[0]]
        return int(_array(equation.outvars[0]).size * (kernel.size // max(filters, 1)))
    return 0


def _compile(lowered: Lowered, barriers: bool, small: bool, options: dict[str, str]) -> Compiled:
    skipped = [_KEEP_BARRIERS] if barriers else []
    if small:
        skipped.append(_DIVIDE_LOOPS)
    known: dict[str, str | bool] = {name: value for name, value in options.items() if name not in _unknown}
    if skipped:
        known["xla_disable_hlo_passes"] = ",".join(skipped)  # names that XLA does not know change nothing
    try:
        return lowered.compile(known or None)
    except Exception as e:  # options differ between versions of XLA: leave out those that this one names
        wrong = {name for name in options.keys() & known.keys() if name in str(e)}
        if not wrong:
            raise
        _unknown.update(wrong)
        return _compile(lowered, barriers, small, options)
