"""An optimizer's update cut into programs for the servers that hold its pieces.

The update of all pieces is traced once. Every value then has a home: the server whose gradients, parameters or state it
is made of. Small values of several servers, such as the norm of all gradients, have none: each server sends its part
at the end of a phase, and all servers compute the rest in the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.runtime.devices import load_jax

#: a server's number; SHARED of what each server has alike; CROSS of what is made of values of several servers
Home: TypeAlias = int
SHARED, CROSS = -1, -2
_MAX_CROSSING_ELEMENTS = 1024
_MAX_PHASES = 8
_CALLS = {
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "remat",
    "checkpoint",
}
_ELEMENTWISE = frozenset(
    [
        "abs",
        "acos",
        "acosh",
        "add",
        "add_any",
        "and",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cbrt",
        "ceil",
        "clamp",
        "conj",
        "convert_element_type",
        "copy",
        "cos",
        "cosh",
        "div",
        "eq",
        "erf",
        "erf_inv",
        "erfc",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "ge",
        "gt",
        "imag",
        "integer_pow",
        "is_finite",
        "le",
        "lgamma",
        "log",
        "log1p",
        "logistic",
        "lt",
        "max",
        "min",
        "mul",
        "ne",
        "neg",
        "nextafter",
        "not",
        "or",
        "pow",
        "real",
        "rem",
        "round",
        "rsqrt",
        "select_n",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "stop_gradient",
        "sub",
        "tan",
        "tanh",
        "xor",
    ]
)
_REDUCTIONS = {"reduce_sum": "add", "reduce_max": "max", "reduce_min": "min"}


class Inseparable(Exception):
    """An optimizer that needs whole arrays of several servers at once."""


@dataclass(frozen=True)
class Flow:
    """A traced update: its values in the order in which they are computed."""

    closed: Any  # the ClosedJaxpr

    @property
    def inputs(self) -> list[Any]:
        """The values that it is given."""
        return list(self.closed.jaxpr.invars)

    @property
    def outputs(self) -> list[Any]:
        """The values that it gives."""
        return list(self.closed.jaxpr.outvars)


def trace(function: Callable[..., Sequence[Any]], arguments: Sequence[Any]) -> Flow:
    """The flow of a function of arrays, without calls of functions inside."""
    jax, _ = load_jax()
    closed = jax.make_jaxpr(function)(*arguments)
    flat = jax.make_jaxpr(lambda *values: _run(closed.jaxpr, closed.consts, values))
    return Flow(flat(*arguments))


def _run(jaxpr: Any, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Evaluates a jaxpr, with the bodies of calls in place of the calls."""
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *values], strict=True))
    return _evaluate(jaxpr.eqns, known, jaxpr.outvars)


def _evaluate(eqns: Iterable[Any], known: dict[Any, Any], wanted: Iterable[Any]) -> list[Any]:
    """The values that are wanted, computed by some equations from those that are known."""
    for eqn in eqns:
        given = [_value(v, known) for v in eqn.invars]
        inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
        if eqn.primitive.name in _CALLS and hasattr(inner, "consts"):
            results = _run(inner.jaxpr, inner.consts, given)
        else:
            made = eqn.primitive.bind(*given, **eqn.params)
            results = made if eqn.primitive.multiple_results else [made]
        known.update(zip(eqn.outvars, results, strict=True))
    return [_value(v, known) for v in wanted]


def _value(v: Any, known: dict[Any, Any]) -> Any:
    return v.val if hasattr(v, "val") else known[v]


def _variables(values: Iterable[Any]) -> list[Any]:
    return [v for v in values if not hasattr(v, "val")]  # a literal has its value


# -- which arrays may be split -----------------------------------------------------------------------


def splittable(flow: Flow, leaf_of: Sequence[int | None]) -> set[int]:
    """The arrays whose update is the same if they are updated in pieces.

    `leaf_of` has the number of the array that each input belongs to. Elements must be updated one by one. Sums and
    extremes of an array may be used together with those of others, as the norm of all gradients does.
    """
    of: dict[Any, frozenset[int]] = {}
    plain: set[Any] = set()  # scalars, and what has each element from the same elements of arrays
    spoiled: set[int] = set()
    for v, leaf in zip(flow.inputs, leaf_of, strict=True):
        of[v] = frozenset() if leaf is None else frozenset([leaf])
        if leaf is not None or not v.aval.shape:
            plain.add(v)
    users = _users(flow)
    for eqn in flow.closed.jaxpr.eqns:
        given = _variables(eqn.invars)
        touched = frozenset().union(*(of.get(v, frozenset()) for v in given))
        arrays = [v for v in given if v.aval.shape]
        name = eqn.primitive.name
        of.update(dict.fromkeys(eqn.outvars, touched))
        if (
            not arrays
            and (name in _ELEMENTWISE or name == "broadcast_in_dim" or not eqn.outvars[0].aval.shape)
        ) or (name in _ELEMENTWISE and plain.issuperset(arrays)):
            plain.update(eqn.outvars)
        elif not (plain.issuperset(arrays) and _joins_all(eqn, users)):
            spoiled |= frozenset().union(*(of.get(v, frozenset()) for v in arrays))
        else:
            plain.update(eqn.outvars)
        if len({v.aval.shape for v in arrays}) > 1:
            spoiled |= touched
    # An array that none of its own scalars leave alone: what else has become of it.
    for v in _variables(flow.outputs):
        if v.aval.shape and v not in plain:
            spoiled |= of.get(v, frozenset())
    return {leaf for leaf in leaf_of if leaf is not None} - spoiled


def _users(flow: Flow) -> dict[Any, list[Any]]:
    users: dict[Any, list[Any]] = {}
    for eqn in flow.closed.jaxpr.eqns:
        for v in _variables(eqn.invars):
            users.setdefault(v, []).append(eqn)
    return users


def _joins_all(eqn: Any, users: dict[Any, list[Any]]) -> bool:
    """Whether a reduction to one number is used in the same reduction over several arrays, and nowhere else."""
    combine = _REDUCTIONS.get(eqn.primitive.name)
    if combine is None or eqn.outvars[0].aval.shape:
        return False
    value = eqn.outvars[0]
    while True:
        using = users.get(value, [])
        if len(using) != 1 or using[0].primitive.name != combine:
            return False
        if len(_variables(using[0].invars)) == 2:
            return True
        value = using[0].outvars[0]  # 0 + x, where a sum begins


# -- which server computes which value ---------------------------------------------------------------


class Phases:
    """The programs of each server, phase by phase."""

    def __init__(self, flow: Flow, homes: Sequence[Home], owners: Sequence[Home]) -> None:
        """`homes` are those of the inputs, and `owners` of the outputs. Raises Inseparable."""
        self._flow = flow
        self._made_by = {v: eqn for eqn in flow.closed.jaxpr.eqns for v in eqn.outvars}
        self._home: dict[Any, Home] = dict(zip(flow.inputs, homes, strict=True))
        self._home.update(dict.fromkeys(flow.closed.jaxpr.constvars, SHARED))
        self._phase: dict[Any, int] = dict.fromkeys(self._home, 0)
        self._crossing: dict[Any, None] = {}
        for eqn in flow.closed.jaxpr.eqns:
            self._settle(eqn)
        for v, owner in zip(flow.outputs, owners, strict=True):
            if not hasattr(v, "val") and self._home[v] not in (owner, SHARED, CROSS):
                self._cross(v)
        last = [self._phase[v] + (v in self._crossing) for v in [*_variables(flow.outputs), *self._crossing]]
        self.count = 1 + max(last, default=0)
        if self.count > _MAX_PHASES:
            raise Inseparable(f"it needs {self.count} rounds of messages between the servers")

    def _settle(self, eqn: Any) -> None:
        given = _variables(eqn.invars)
        homes = {self._home[v] for v in given} - {SHARED, CROSS}
        home: Home
        joins = any(self._home[v] == CROSS for v in given) and not any(v.aval.shape for v in given)
        if len(homes) == 1 and not joins:  # a sum of numbers of all servers goes on as one
            (home,) = homes
        elif homes:
            large = {self._home[v] for v in given if _size(v) > _MAX_CROSSING_ELEMENTS} - {SHARED, CROSS}
            if len(large) > 1:
                raise Inseparable(f"'{eqn.primitive.name}' takes whole arrays of several servers")
            home = large.pop() if large else CROSS
        else:
            home = CROSS if any(self._home[v] == CROSS for v in given) else SHARED
        phase = 0
        for v in given:
            crosses = self._home[v] not in (home, SHARED, CROSS)
            if crosses:
                self._cross(v)
            phase = max(phase, self._phase[v] + crosses)
        for v in eqn.outvars:
            self._home[v], self._phase[v] = home, phase

    def _cross(self, v: Any) -> None:
        if _size(v) > _MAX_CROSSING_ELEMENTS:
            raise Inseparable(f"a value of {_size(v)} elements is needed on several servers")
        self._crossing[v] = None

    def sent(self, phase: int, server: int) -> list[Any]:
        """The values that a server sends to all at the end of a phase."""
        return [v for v in self._crossing if self._home[v] == server and self._phase[v] == phase]

    def known(self, phase: int) -> list[Any]:
        """The values that were sent before a phase."""
        return [v for v in self._crossing if self._phase[v] < phase]

    def program(self, inputs: Sequence[Any], wanted: Sequence[Any]) -> Callable[..., list[Any]]:
        """A function from some values of the flow to others."""
        have, needed, chosen = set(inputs), set(_variables(wanted)), []
        for eqn in reversed(self._flow.closed.jaxpr.eqns):
            if any(v in needed and v not in have for v in eqn.outvars):
                chosen.append(eqn)
                needed.update(_variables(eqn.invars))
        constants = dict(zip(self._flow.closed.jaxpr.constvars, self._flow.closed.consts, strict=True))

        def run(*values: Any) -> list[Any]:
            known = {**constants, **dict(zip(inputs, values, strict=True))}
            return _evaluate(reversed(chosen), known, wanted)

        return run


def _size(v: Any) -> int:
    return int(np.prod(v.aval.shape))
