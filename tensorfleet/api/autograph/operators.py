"""`ag__`: the branches, loops and logic of converted functions, with tensors or with Python's own values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

from tensorfleet.api.autograph.iterables import registered_for
from tensorfleet.base import nest
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.functions import FunctionGraph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, get_default_graph
from tensorfleet.ops.array.basic import group, identity
from tensorfleet.ops.array.checks import Assert
from tensorfleet.ops.array.shape import shape
from tensorfleet.ops.control.cond import cond as tf_cond
from tensorfleet.ops.control.context import ControlFlowContext
from tensorfleet.ops.control.while_loop import while_loop
from tensorfleet.ops.math.compare import equal, logical_not, not_equal
from tensorfleet.ops.state.tensor_array import TensorArray

_PLAIN = (bool, int, float, str)
# Operations that only hand values on, into branches and loops and from turn to turn.
_PASSING = {"Enter", "RefEnter", "Switch", "RefSwitch", "NextIteration", "RefNextIteration", "LoopCond"}

#: The values of the variables that a branch or a loop sets.
State: TypeAlias = tuple[Any, ...]
_Pair: TypeAlias = tuple[str, Tensor, Tensor]


class Undefined:
    """Stands for a variable that has no value yet."""

    def __init__(self, symbol_name: str) -> None:
        self.symbol_name = symbol_name

    def __repr__(self) -> str:
        return f"<undefined variable {self.symbol_name!r}>"

    def __getattr__(self, name: str) -> NoReturn:
        # Python itself looks for these, as in copying: they must seem to be missing.
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnboundLocalError(f"local variable {self.symbol_name!r} referenced before assignment")


class UndefinedReturnValue:
    """Stands for the returned value of a function that has not returned yet."""


def retval(value: Any) -> Any:
    """The returned value of a function: None without a `return`."""
    return None if isinstance(value, UndefinedReturnValue) else value


def ldu(load: Callable[[], Any], name: str) -> Any:
    """A variable or a part of one, which may have no value."""
    try:
        return load()
    except (AttributeError, LookupError, NameError):
        return Undefined(name)


# -- logic ----------------------------------------------------------------------------------------------


def not_(value: object) -> Any:
    """`not value`."""
    return logical_not(value) if isinstance(value, Tensor) else not value


def eq(a: object, b: object) -> Any:
    """`a == b`, element by element where one is a tensor."""
    return equal(a, b) if isinstance(a, Tensor) or isinstance(b, Tensor) else a == b


def not_eq(a: object, b: object) -> Any:
    """`a != b`, element by element where one is a tensor."""
    return not_equal(a, b) if isinstance(a, Tensor) or isinstance(b, Tensor) else a != b


def and_(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """`first and second`, of which the second is computed if the first is true."""
    value = first()
    if isinstance(value, Tensor):
        return tf_cond(value, second, lambda: value)
    return value and second()


def or_(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """`first or second`, of which the second is computed if the first is not true."""
    value = first()
    if isinstance(value, Tensor):
        return tf_cond(value, lambda: value, second)
    return value or second()


def if_exp(test: object, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """`yes if test else no`."""
    if isinstance(test, Tensor):
        return tf_cond(test, yes, no)
    return yes() if test else no()


def assert_stmt(test: object, message: Callable[[], Any]) -> Operation | None:
    """`assert test, message`."""
    if isinstance(test, Tensor):
        text = message()
        return Assert(test, [text] if isinstance(text, (str, Tensor)) else list(nest.flatten(text)))
    assert test, message()
    return None


# -- branches -------------------------------------------------------------------------------------------


def if_stmt(
    test: object,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get_state: Callable[[], State],
    set_state: Callable[[State], None],
    names: tuple[str, ...],
    results: int,
) -> None:
    """`if test: body, else: orelse`; the first `results` variables are read behind it."""
    if not isinstance(test, Tensor):
        body() if test else orelse()
        return
    before = get_state()
    states: dict[str, State] = {}

    def branch(run: Callable[[], None], name: str, other: str) -> Callable[[], State]:
        def call() -> State:
            set_state(before)
            effects = _effects_of(run)
            after = get_state()[:results]
            _need_values(after, name)
            states[name] = after
            if other in states:
                _need_same_branches(states["if"], states["else"], names)
            return _behind(effects, after)

        return call

    yes, no = branch(body, "if", "else"), branch(orelse, "else", "if")
    if not results:
        # A branch that sets no variable still has its effects if it is taken.
        tf_cond(test, lambda: group(*_effects_of(yes)), lambda: group(*_effects_of(no)))
        set_state(before)
        return
    # Strict: a single value stays in its tuple.
    results_of_branch = tf_cond(test, yes, no, strict=True)
    set_state((*results_of_branch, *before[results:]))


def _effects_of(run: Callable[[], Any]) -> list[Operation]:
    """Runs a block; the operations with effects that it made."""
    graph = get_default_graph()
    start = len(graph.get_operations())
    run()
    here = graph._get_control_flow_context()
    return [op for op in graph.get_operations()[start:] if _acts(op, here)]


def _acts(op: Operation, here: ControlFlowContext | None) -> bool:
    """Whether an operation of a block has an effect, or ends a branch or a loop inside that may have one."""
    if op.spec.variable or op.type in _PASSING or op.type.startswith(("TensorArray", "Stack")):
        return False
    context = op._control_flow_context
    if op.type in ("Exit", "RefExit") and context is not None:
        context = context.outer_context
    return context is here and bool(op.spec.stateful or op.spec.updates)


def _behind(effects: list[Operation], values: State) -> State:
    """Values that wait for the effects of a block."""
    if not effects:
        return values
    with control_dependencies(effects):
        result: State = nest.map_structure(lambda v: identity(v) if isinstance(v, Tensor) else v, values)
        return result


def _need_values(values: State, branch: str) -> None:
    undefined = tuple(v.symbol_name for v in values if isinstance(v, Undefined))
    if undefined:
        raise ValueError(
            f"The following symbols must also be initialized in the {branch} branch: {undefined}. Alternatively, you may "
            "initialize them before the if statement."
        )
    if any(isinstance(v, UndefinedReturnValue) for v in values):
        raise ValueError(
            f"A value must also be returned from the {branch} branch. If a value is returned from one branch of a "
            "conditional a value must be returned from all branches."
        )


def _tensor_pairs(first: State, second: State, names: tuple[str, ...], where: str) -> Iterator[_Pair]:
    """The tensors of variables before and after, with the variables' names; TypeError if they are nested otherwise."""
    for a, b, name in zip(first, second, names, strict=False):
        try:
            nest.assert_same_structure(a, b)
        except (ValueError, TypeError) as e:
            raise TypeError(f'"{name}" does not have the same nested structure {where}.\n\n{e}') from e
        for x, y in zip(nest.flatten(a), nest.flatten(b), strict=True):
            x, y = _as_tensor(x), _as_tensor(y)
            if isinstance(x, Tensor) and isinstance(y, Tensor):
                yield name, x, y


def _need_same_branches(yes: State, no: State, names: tuple[str, ...]) -> None:
    for name, x, y in _tensor_pairs(yes, no, names, "in the TRUE and FALSE branches"):
        if x.dtype != y.dtype:
            raise TypeError(
                f'"{name}" has dtype {x.dtype.name} in the TRUE branch, but dtype={y.dtype.name} in the FALSE branch. '
                "TensorFlow control flow requires that they are the same."
            )


def _as_tensor(value: Any) -> Any:
    return to_tensor(value) if isinstance(value, _PLAIN) else value


# -- loops ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Variables:
    """The variables that a loop sets: how to read and to set them all, and their names."""

    read: Callable[[], State]
    assign: Callable[[State], None]
    names: tuple[str, ...]


def while_stmt(
    test: Callable[[], Any],
    body: Callable[[], None],
    get_state: Callable[[], State],
    set_state: Callable[[State], None],
    names: tuple[str, ...],
) -> None:
    """`while test: body`."""
    with FunctionGraph("tmp", get_default_graph()).as_default():  # what is made there is not used
        first = test()
    if isinstance(first, Tensor):
        _loop(test, body, _Variables(get_state, set_state, names))
        return
    if not first:
        return
    # The test has run: running it once more before the first turn would show if it has effects of its own.
    body()
    while test():
        body()


def _need_defined(values: State) -> None:
    undefined = tuple(v.symbol_name for v in values if isinstance(v, Undefined))
    if undefined:
        raise ValueError(
            f"TensorFlow requires that the following symbols must be defined before the loop: {undefined}"
        )
    if any(isinstance(v, UndefinedReturnValue) for v in values):
        raise ValueError("return statements are not supported within a TensorFlow loop.")


def _loop(test: Callable[[], Any], body: Callable[[], None], variables: _Variables) -> None:
    """A loop of the graph over variables."""
    before = variables.read()
    _need_defined(before)
    if not before:
        # A loop of the graph carries at least one tensor.
        while_loop(lambda _: test(), _doing(body), (constant(0),), return_same_structure=True)
        variables.assign(())
        return

    def cond(*values: Any) -> Any:
        variables.assign(values)
        return test()

    def step(*values: Any) -> State:
        variables.assign(values)
        effects = _effects_of(body)
        after = variables.read()
        _need_same_turns(values, after, variables.names)
        return _behind(effects, after)

    variables.assign(tuple(while_loop(cond, step, before, return_same_structure=True)))


def _doing(body: Callable[[], None]) -> Callable[[Tensor], State]:
    """A turn that changes no variable, but may have effects."""

    def step(held: Tensor) -> State:
        return _behind(_effects_of(body), (held,))

    return step


def _need_same_turns(before: State, after: State, names: tuple[str, ...]) -> None:
    for name, x, y in _tensor_pairs(before, after, names, "after one iteration"):
        if x.dtype.base_dtype != y.dtype.base_dtype:
            raise TypeError(
                f'"{name}" has dtype {x.dtype.name} before the loop, but dtype {y.dtype.name} after one iteration. '
                "TensorFlow control flow requires it stays the same."
            )
        if not _includes(x.shape, y.shape):
            raise ValueError(
                f'"{name}" has shape {x.shape} before the loop, but shape {y.shape} after one iteration. TensorFlow '
                "control flow requires it stays the same or be more specific."
            )


def _includes(wide: TensorShape, narrow: TensorShape) -> bool:
    if wide.ndims is None:
        return True
    if narrow.ndims != wide.ndims:
        return False
    pairs = zip(wide.as_list(), narrow.as_list(), strict=True)
    return all(a is None or a == b for a, b in pairs)


def for_stmt(
    items: Any,
    extra: Callable[[], Any] | None,
    body: Callable[[Any], None],
    get_state: Callable[[], State],
    set_state: Callable[[State], None],
    names: tuple[str, ...],
) -> None:
    """`for item in items: body(item)`, as long as `extra` holds."""
    variables = _Variables(get_state, set_state, names)
    if isinstance(items, Tensor):
        # The numbers of a range are counted, not stored: a range may be long.
        (_for_range if items.op.type == "Range" else _for_rows)(items, extra, body, variables)
    elif registered_for(items) is not None:
        _for_dataset(items, extra, body, variables)
    else:
        for item in items:
            if extra is not None and not extra():
                break
            body(item)


def _counted(
    start: Tensor,
    goes_on: Callable[[Tensor], Tensor],
    next_one: Callable[[Tensor], Tensor],
    extra: Callable[[], Any] | None,
    body: Callable[[Any], None],
    variables: _Variables,
) -> None:
    """A loop with one variable more: the number of the turn."""
    current = [start]

    def test() -> Any:
        more = goes_on(current[0])
        return more if extra is None else tf_cond(more, extra, lambda: False)

    def turn() -> None:
        held = current[0]
        body(held)
        current[0] = next_one(held)

    def change(values: State) -> None:
        current[0] = values[0]
        variables.assign(values[1:])

    counted = _Variables(lambda: (current[0], *variables.read()), change, ("iterate", *variables.names))
    _loop(test, turn, counted)


def _for_range(
    items: Tensor, extra: Callable[[], Any] | None, body: Callable[[Any], None], variables: _Variables
) -> None:
    start, limit, delta = items.op.inputs
    step = constant_value(delta)

    def goes_on(i: Tensor) -> Tensor:
        if step is not None:
            return i < limit if step >= 0 else i > limit
        up = apply("LogicalAnd", delta >= 0, i < limit)
        return apply("LogicalOr", up, apply("LogicalAnd", delta < 0, i > limit))

    _counted(start, goes_on, lambda i: i + delta, extra, body, variables)


def _for_rows(
    items: Tensor, extra: Callable[[], Any] | None, body: Callable[[Any], None], variables: _Variables
) -> None:
    known = items.shape.as_list()[0] if items.shape.ndims else None
    if items.shape.ndims == 0:
        raise ValueError(f"len requires a non-scalar tensor, got one of shape {items.shape}")
    count = shape(items)[0] if known is None else np.int32(known)
    rows = TensorArray(items.dtype, size=count).unstack(items)
    _counted(
        constant(0), lambda i: i < count, lambda i: i + 1, extra, lambda i: body(rows.read(i)), variables
    )


def _for_dataset(
    items: Any, extra: Callable[[], Any] | None, body: Callable[[Any], None], variables: _Variables
) -> None:
    """A reduction; where a loop may end before the data does, the rest leaves the state as it is."""
    before = variables.read()
    _need_defined(before)

    def turn(values: State, item: Any) -> State:
        variables.assign(values if before else ())
        if extra is None:
            body(item)
        else:
            state = variables.read, variables.assign, variables.names
            if_stmt(extra(), lambda: body(item), lambda: None, *state, len(before))
        after = variables.read() if before else values
        _need_same_turns(values, after, variables.names)
        return after

    final = items.reduce(before or (constant(0),), turn)
    variables.assign(tuple(final) if before else ())
