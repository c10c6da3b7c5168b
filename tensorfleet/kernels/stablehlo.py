"""Reads StableHLO programs that came from elsewhere, and refuses those that do more than compute.

A program is data, but not harmless data: it may name functions of this process (custom calls), wait for values that
never come, or call itself. It is accepted only if it consists of StableHLO's own arithmetic and of the few LAPACK
routines below. These take their sizes from the types of the call, so the types have to fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from tensorfleet.base import errors

#: the sizes of a tensor, None for those that only a run knows
Sizes: TypeAlias = "tuple[int | None, ...]"

_Types: TypeAlias = "tuple[tuple[Sizes, str], ...]"

_MAX_BYTES = 1 << 30
_MAX_DEPTH = 100
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_BRACKET = re.compile(rb"[()\[\]{}<>]")
_ALIAS = re.compile(rb"[#!]\s*[\w.$-]+\s*=|\{-#")
_DIALECTS = ("builtin", "func", "stablehlo", "chlo")
# They exchange values with the host or with other devices, and may wait for ever.
_EXCHANGES = (
    "after_all all_gather all_reduce all_to_all collective_broadcast collective_permute create_token infeed"
)
_EXCHANGES += " outfeed partition_id recv reduce_scatter replica_id send"
_COMMUNICATING = frozenset(f"stablehlo.{name}" for name in _EXCHANGES.split())
_PRODUCTS = frozenset({"stablehlo.dot", "stablehlo.dot_general", "stablehlo.convolution"})
# XLA's own, which it evaluates while it compiles.
_ASSERTION = "shape_assertion"
# Operations that StableHLO has for known sizes alone; JAX writes them as calls for others.
_UNKNOWN_SIZES = "stablehlo.dynamic_"
# The shapes of each LAPACK routine's operands and results behind the dimensions of the batch: m and n are sizes, k is
# the smaller of the two, and r is free.
_LAPACK = {
    "potrf": "mm -> mm,",
    "getrf": "mn -> mn,k,",
    "geqrf": "mn -> mn,k",
    "orgqr": "mn,r -> mn",
    "ungqr": "mn,r -> mn",
    "syevd": "mm -> mm,m,",
    "heevd": "mm -> mm,m,",
}
_LEFT, _RIGHT, _ALL, _SMALL = (ord(letter) for letter in "LRAS")


@dataclass(frozen=True)
class CheckedProgram:
    """A checked program: its types, how it is best compiled, and its form for JAX."""

    arguments: tuple[tuple[Sizes, str], ...]
    results: tuple[tuple[Sizes, str], ...]
    #: whether it has matrix products or convolutions
    has_products: bool
    #: how many LAPACK calls it has that work on several matrices
    batches: int
    #: the portable artifact, which `jax.export` calls
    artifact: bytes


def write_program(artifact: bytes) -> bytes:
    """A portable artifact of `jax.export` as the text that `read_program` reads."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import sdy, stablehlo

    context = _context()
    sdy.register_dialect(context)  # the hints of how to divide an operation among devices
    with context:
        module = stablehlo.deserialize_portable_artifact(context, artifact)

        def strip(operation: Any) -> Any:
            for name in [one for one in _attribute_names(operation) if one.startswith("sdy.")]:
                del operation.attributes[name]
            return ir.WalkResult.ADVANCE

        module.operation.walk(strip)
        text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=False)
    return str(text).encode()


@lru_cache(maxsize=256)
def program_of(artifact: bytes) -> CheckedProgram:
    """The facts about an artifact that was checked here, or made here."""
    return read_program(write_program(artifact))


def _attribute_names(operation: Any) -> list[str]:
    """The names of the attributes; versions of MLIR give names or pairs."""
    return [one if isinstance(one, str) else one.name for one in operation.attributes]


def _context() -> Any:
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)  # `func`
    context = ir.Context()
    context.append_dialect_registry(registry)
    stablehlo.register_dialect(context)
    chlo.register_dialect(context)
    return context


@lru_cache(maxsize=256)
def read_program(text: bytes) -> CheckedProgram:
    """Checks a program; InvalidArgumentError when it is malformed or does what it must not.

    It travels as text because MLIR's reader of the binary form ends the process, or never ends, when some bytes of it are
    wrong.
    """
    _check_text(text)
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    context = _context()
    reasons: list[str] = []
    with context, context.attach_diagnostic_handler(lambda found: _note(found, reasons)):
        try:
            module = ir.Module.parse(text.decode())
            if not module.operation.verify():
                raise ValueError("it does not verify")
        except Exception as e:  # of the bindings of MLIR, which has several kinds
            raise _unreadable("; ".join(reasons[:2]) or str(e)[:400]) from None
        try:
            facts = _Reader(ir, module).read()
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RuntimeError) as e:
            raise _refused(f"has attributes that make no sense ({e!r})") from None
        try:
            artifact = stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version())
        except Exception as e:  # something that no version of the format has
            raise _unreadable("; ".join(reasons[:2]) or str(e)[:400]) from None
        return CheckedProgram(*facts, bytes(artifact))


def _unreadable(reason: str) -> errors.InvalidArgumentError:
    reason = " ".join(reason.split())
    return errors.invalid(
        f"A StableHLO program cannot be read: {reason}. Export it again, with the version of JAX that reads it."
    )


def _check_text(text: bytes) -> None:
    """Refuses texts that would cost the parser its stack, or memory that grows with 2 to the power of their length."""
    if len(text) > _MAX_BYTES:
        raise _unreadable(
            f"it has {len(text)} bytes, and at most {_MAX_BYTES} are read; pass large arrays as tensors"
        )
    if not text.isascii() or b"\0" in text:
        raise _unreadable("it is no text")
    bare = _STRING.sub(b"", text).replace(b"->", b"")
    if _ALIAS.search(bare):
        raise _unreadable("it has names for attributes or types, or resources outside of it")
    depth = deepest = 0
    for bracket in _BRACKET.findall(bare):
        depth += 1 if bracket in b"([{<" else -1
        deepest = max(deepest, depth)
    if deepest > _MAX_DEPTH:
        raise _unreadable(f"its brackets are {deepest} deep, and at most {_MAX_DEPTH} may be")


def _note(found: Any, reasons: list[str]) -> bool:
    try:
        reasons.append(str(found.message)[:200])
    except RuntimeError:  # names that are no text
        reasons.append("it has names that are no text")
    return True  # handled: nothing is printed


class _Reader:
    """One look through a module."""

    def __init__(self, ir: Any, module: Any) -> None:
        self._ir = ir
        self._module = module
        self._calls: dict[str, set[str]] = {}
        self._has_products = False
        self._batches = 0

    def read(self) -> tuple[_Types, _Types, bool, int]:
        """Looks at every operation of every function."""
        main: Any = None
        for function in self._module.body.operations:
            if function.operation.name != "func.func":
                raise _refused(f"has {function.operation.name} outside of its functions")
            name = function.attributes["sym_name"].value
            if not len(function.regions[0].blocks):
                raise _refused(f"calls {name!r}, which is not part of it")
            self._calls[name] = set()
            for operation in _inside(function.operation):
                self._look(name, operation)
            main = function if name == "main" else main
        if main is None:
            raise _refused("has no function 'main'")
        self._check_recursion()
        kind = main.attributes["function_type"].value
        arguments, results = ([self._tensor(t) for t in types] for types in (kind.inputs, kind.results))
        return tuple(arguments), tuple(results), self._has_products, self._batches

    def _tensor(self, kind: Any) -> tuple[Sizes, str]:
        ir = self._ir
        if not isinstance(kind, ir.RankedTensorType):
            raise _refused(f"takes or gives a {kind}, which is no array")
        sizes = [None if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in range(kind.rank)]
        return tuple(sizes), str(kind.element_type)

    def _look(self, function: str, operation: Any) -> None:
        name = operation.name
        if name.partition(".")[0] not in _DIALECTS:
            raise _refused(f"has the operation {name}, which is not of StableHLO")
        if name in _COMMUNICATING:
            raise _refused(f"has {name}, which exchanges values with the host or with other devices")
        self._has_products |= name in _PRODUCTS
        for reference in ("callee", "decomposition", "called_computations"):
            if reference in operation.attributes:
                self._note_calls(function, operation.attributes[reference])
        if name == "stablehlo.custom_call":
            self._check_custom_call(operation)

    def _note_calls(self, function: str, attribute: Any) -> None:
        ir = self._ir
        several = list(attribute) if isinstance(attribute, ir.ArrayAttr) else [attribute]
        self._calls[function].update(one.value for one in several)

    def _check_recursion(self) -> None:
        """Refuses functions that call themselves: XLA would expand the calls for ever."""
        waiting = {name: set(called) & self._calls.keys() for name, called in self._calls.items()}
        while waiting:
            free = [name for name, called in waiting.items() if not called]
            if not free:
                raise _refused(f"has a function that calls itself: {min(waiting)!r}")
            for name in free:
                del waiting[name]
            for called in waiting.values():
                called.difference_update(free)

    def _check_custom_call(self, call: Any) -> None:
        target = call.attributes["call_target_name"].value
        if target == _ASSERTION:
            return
        if target.startswith(_UNKNOWN_SIZES):
            raise _refused(
                f"has {target!r} along a size that only a run knows, as jnp.cumsum makes it. Give it static shapes",
                ended=True,
            )
        routine = target[len("lapack_") + 1 : -len("_ffi")]
        known = routine in _LAPACK or routine in ("trsm", "gesdd")
        if not (known and target == f"lapack_{target[7]}{routine}_ffi" and target[7] in "sdcz"):
            hint = (
                "Python callbacks (jax.pure_callback, io_callback, jax.debug.print) cannot be exported."
                if "callback" in target
                else "Only the LAPACK routines behind cholesky, qr, eigh, svd, lu and triangular_solve may be called."
            )
            raise _refused(f"calls the function {target!r} of the process that runs it. {hint}", ended=True)
        given = [self._tensor(value.type)[0] for value in call.operands]
        made = [self._tensor(value.type)[0] for value in call.results]
        if any(size is None for sizes in (*given, *made) for size in sizes):
            raise _refused(f"calls {target!r} for matrices of unknown sizes. Give them static shapes", True)
        if not self._fits(routine, given, made, call.attributes):
            raise _refused(f"calls {target!r} with arrays {given} for results {made}, which do not fit")
        self._batches += any(size > 1 for size in given[0][:-2] if size is not None)

    def _fits(self, routine: str, given: list[Sizes], made: list[Sizes], attributes: Any) -> bool:
        """Whether the routine stays within its arrays."""
        if not given or len(given[0]) < 2:
            return False
        if routine == "trsm":
            side = self._number(attributes, "side")
            rule = {_LEFT: "mm,mn -> mn", _RIGHT: "nn,mn -> mn"}.get(side)
        elif routine == "gesdd":
            rule = {_ALL: "mn -> mn,k,mm,nn,", _SMALL: "mn -> mn,k,mk,kn,"}.get(
                self._number(attributes, "mode")
            )
        else:
            rule = _LAPACK[routine]
        return rule is not None and _matches(rule, given, made)

    def _number(self, attributes: Any, name: str) -> int:
        if "mhlo.backend_config" not in attributes:
            return -1
        config = attributes["mhlo.backend_config"]
        number: int = config[name].value if name in config else -1
        return number


def _inside(operation: Any) -> Iterator[Any]:
    """All operations in the regions of one."""
    stack = [operation]
    while stack:
        for region in stack.pop().regions:
            for block in region.blocks:
                for one in block.operations:
                    yield one.operation
                    stack.append(one.operation)


def _matches(rule: str, given: list[Sizes], made: list[Sizes]) -> bool:
    """Whether shapes are those of a rule, for one number for each letter, behind the same batch dimensions."""
    wanted = [[part.strip() for part in side.split(",")] for side in rule.split("->")]
    if [len(given), len(made)] != [len(side) for side in wanted]:
        return False
    batch = given[0][: len(given[0]) - len(wanted[0][0])]
    sizes: dict[str, int | None] = {}
    pairs = list(zip((*wanted[0], *wanted[1]), (*given, *made), strict=True))
    for letters, shape in pairs:
        if len(shape) != len(batch) + len(letters) or shape[: len(batch)] != batch:
            return False
        for letter, size in zip(letters, shape[len(batch) :], strict=True):
            if sizes.setdefault(letter, size) != size:
                return False
    smaller = min(size for letter in "mn" if (size := sizes.get(letter)) is not None)
    return sizes.get("k", smaller) == smaller


def _refused(what: str, ended: bool = False) -> errors.InvalidArgumentError:
    advice = "" if ended else ". Only programs that compute are run here: export the function without it."
    return errors.invalid(f"A StableHLO program {what}{advice}")
