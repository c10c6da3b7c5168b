"""Gradients of branches and loops.

A branch: a Switch on the same condition sends the gradient of the result into the branch that was taken. A tensor
that the branch takes from outside gets a Merge of the branch's gradient and, for the other branch, zeros.

A loop: a second loop runs the body's gradient as often as the body ran, last iteration first. Values of the
forward body that it needs are pushed on stacks by the forward loop, which also counts its iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list, apply_op, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient
from tensorfleet.graph.scopes import control_dependencies, get_default_graph, name_scope
from tensorfleet.ops.control.context import (
    CondContext,
    ControlFlowContext,
    WhileContext,
    copied_constant,
    output_context,
    switch,
    while_context,
)
from tensorfleet.ops.control.nodes import is_constant_enter

#: The gradient of a tensor: dense, or of some rows.
Gradient: TypeAlias = Tensor | IndexedSlices

# -- branches -----------------------------------------------------------------------------------------


@gradient("Merge", "RefMerge")
def _merge_grad(op: Operation, grad: Tensor, _: Tensor) -> list[Tensor | None]:
    pred = _condition(op)
    if (
        pred is None
    ):  # a Merge made by hand, or the gradient of a branch: its second output says which input it took
        chosen = [apply("Equal", op._outputs[1], i) for i in range(len(op._inputs))]
        return [switch(_dense(grad), was)[1] for was in chosen]
    halves = switch(_dense(grad), pred, name="cond_grad")
    return [halves[_branch_of(t, pred)] for t in op._inputs]


def _condition(op: Operation) -> Tensor | None:
    """The condition of a Merge of `tf.cond`; None for any other Merge."""
    around = op._control_flow_context
    for t in op._inputs:
        context = output_context(t._op)
        while context is not None and context.outer_context is not around:
            context = context.outer_context
        if isinstance(context, CondContext):
            pred: Tensor = context.pred
            return pred
    return None


def _branch_of(tensor: Tensor, pred: Tensor) -> int:
    context = output_context(tensor._op)
    while context is not None:
        if isinstance(context, CondContext) and context.pred is pred:
            return context.branch
        context = context.outer_context
    return tensor.value_index


@gradient("Switch", "RefSwitch")
def _switch_grad(
    op: Operation, when_false: Gradient | None, when_true: Gradient | None
) -> list[Gradient | None]:
    grads = [when_false, when_true]
    if when_false is None and when_true is None:
        return [None, None]
    known: Any = when_true if when_true is not None else when_false
    if op._inputs[0].dtype.name == "resource" and all(
        g is None or isinstance(g, IndexedSlices) for g in grads
    ):
        return [_merged_rows(op, grads), None]
    dtype = known.dtype.base_dtype
    dense = [_dense(g) if g is not None else _zeros(op, i, dtype) for i, g in enumerate(grads)]
    if op._get_control_flow_context() is None:
        # Without a cond around it the gradients are there whichever branch is taken.
        dense = [switch(g, op._inputs[1])[i] for i, g in enumerate(dense)]
    merged = apply_list("Merge", dense, name="cond_grad")[0]
    if op._inputs[0].dtype.name != "resource":
        merged._shape = (
            merged.shape.merge_with(op._inputs[0].shape) if merged.shape.rank else op._inputs[0].shape
        )
    return [merged, None]


_switch_grad.accepts_none = True  # type: ignore[attr-defined]


def _merged_rows(op: Operation, grads: Sequence[Any]) -> IndexedSlices:
    """The rows of a variable that the branch taken has a gradient for; none of them if it does not use the variable."""
    data, pred = op._inputs
    known = next(g for g in grads if g is not None)
    wide = any(g is not None and g.indices.dtype.base_dtype.name == "int64" for g in grads)
    values, indices = [], []
    for branch, g in enumerate(grads):
        if g is None:
            row = apply("VariableShape", switch(data, pred)[branch])[1:]
            none = apply("ConcatV2", [constant([0], "int32"), row], 0)
            g = IndexedSlices(apply("Fill", none, constant(0, known.dtype)), apply("Slice", row, [0], [0]))
        values.append(g.values)
        indices.append(apply("Cast", g.indices, DstT="int64") if wide else g.indices)
    rows, places = (apply_list("Merge", each, name="cond_grad")[0] for each in (values, indices))
    return IndexedSlices(rows, places, apply("VariableShape", data))


def _dense(grad: TensorLike) -> Tensor:
    return to_tensor(grad)


def _zeros(op: Operation, branch: int, dtype: DTypeLike) -> Tensor:
    """Zeros like the input of a Switch, available only when the given branch is taken."""
    data, pred = op._inputs
    if data.dtype.name == "resource":
        taken = switch(data, pred)[branch]
        return apply("Fill", apply("VariableShape", taken), constant(0, dtype))
    if data.shape.is_fully_defined():
        taken = apply("Identity", switch(pred, pred)[branch])
        with control_dependencies([taken]):
            return apply(
                "Fill",
                constant(data.shape.as_list(), "int32", name="Shape"),
                constant(0, dtype),
                name="zeros",
            )
    taken = switch(data, pred)[branch]
    return apply("ZerosLike", taken)


# -- loops --------------------------------------------------------------------------------------------


@gradient("Enter", "RefEnter")
def _enter_grad(op: Operation, grad: Tensor) -> Tensor:
    # Within one iteration: a gradient taken inside a loop of a value from outside.
    return grad


@gradient("Exit", "RefExit", "NextIteration", "RefNextIteration")
def _inside_grad(op: Operation, grad: Tensor) -> NoReturn:
    raise LookupError(
        f"'{op.name}' belongs to a loop that was not made by tf.while_loop; it has no gradient."
    )


#: Differentiates one iteration: `walk(ys, grads of ys, xs)` gives the gradients of the xs.
Walk: TypeAlias = Callable[[list[Tensor], list[Tensor], list[Tensor]], list[Any]]


class LoopGradient:
    """The gradient loop of one forward loop, in one call of `tf.gradients`."""

    def __init__(self, forward: WhileContext) -> None:
        self.forward = forward
        self.stacks: dict[Tensor, Tensor] = {}
        self.pops: dict[Tensor, Tensor] = {}
        self.sync: Operation | None = None
        self.forward_sync: Operation | None = None
        context = get_default_graph()._get_control_flow_context()
        #: the gradient of the loop around, if this one lies in another
        self.outer: LoopGradient | None = None if context is None else context.grad_state
        while context is not None and context.grad_state is not None:
            context = context.outer_context
        self.called_in = context
        self.counted: Operation
        self._count_forward()

    def _count_forward(self) -> None:
        """Adds a counter of iterations to the forward loop."""
        forward = self.forward
        graph = get_default_graph()
        with control_dependencies(None), inside_of(graph, forward.outer_context):
            zero = constant(0, "int32", name="f_count")
        if self.outer is not None:  # the pushes of one run of an inner loop come before those of the next
            zero._op._add_control_input(self.outer.counted)
        with control_dependencies(None), inside_of(graph, forward):
            entered = forward.add_variable(zero, name="f_count")
            merged = forward.add_merge(entered)
            halves = switch(merged, forward._pivot)
            self.counted = apply("AddV2", halves[1], 1, name="Add")._op
            self.pushed = forward.close(merged, self.counted._outputs[0])._op
            self.count = apply("Exit", halves[0], name="f_count")
        for history in (forward.merges, forward.nexts, forward.enters):
            history.pop()  # it is no variable of the user's
        forward.ExitResult([self.count])

    def build(self, exit_grads: dict[int, Tensor], active: list[int], walk: Walk) -> list[tuple[Tensor, Any]]:
        """Builds the gradient loop.

        `exit_grads` holds the gradients that reach the loop's results, `active` the variables that carry one
        from iteration to iteration. `walk(ys, grads, xs)` differentiates one iteration of the body. Returns
        the tensors that enter the loop with their gradients.
        """
        forward = self.forward
        loop = WhileContext(
            parallel_iterations=forward.parallel_iterations,
            back_prop=forward.back_prop,
            swap_memory=forward.swap_memory,
            name=forward.name,
            grad_state=self,
        )
        self.loop = loop
        one = constant(1, "int32", name="b_count")
        initial = {i: _initial(exit_grads.get(i), forward.exits[i]) for i in active}
        with loop:
            counter = loop.add_merge(loop.add_variable(self.count, name="b_count"))
            loop._pivot = apply("LoopCond", apply("GreaterEqual", counter, one), name="b_count")
            halves = switch(counter, loop._pivot)
            loop._pivot_for_body = left = apply("Sub", halves[1], one, name="Sub")
            self.popped = left._op
            self.next_count = loop.close(counter, left)._op
            finished = apply("Exit", halves[0], name="b_count")
            states = {}
            for i in active:
                with name_scope(forward.exits[i]._op.name + "_grad"):
                    merged = loop.add_merge(
                        loop.add_variable(initial[i], name="b_exit", shape=forward.merges[i].shape)
                    )
                    states[i] = (merged, switch(merged, loop._pivot))
            grads, invariants = self._iteration(states, walk)
            outer = {}
            for i, (merged, halves) in states.items():
                loop.close(merged, grads[i])
                outer[i] = apply("Exit", halves[0])
            sums = self._accumulate(invariants)
        if self.outer is not None:
            self.outer.synchronize(finished._op)
        loop.exits = [*outer.values(), *sums.values()]
        loop.ExitResult(loop.exits)
        if loop.outer_context is None:
            for t in loop.exits:
                t.graph._unfetchable.discard(t._op)
        return [*sums.items(), *((forward.enters[i]._op._inputs[0], g) for i, g in outer.items())]

    def _iteration(
        self, states: dict[int, tuple[Tensor, list[Tensor]]], walk: Walk
    ) -> tuple[dict[int, Tensor], dict[Tensor, Gradient]]:
        """The gradients after one iteration: of the loop variables, and of the tensors from outside."""
        forward = self.forward
        ys = [forward.nexts[i]._op._inputs[0] for i in states]
        xs = [forward.switches[i][1] for i in states]
        invariants = list(dict.fromkeys(t for t in forward.invariants.values() if is_constant_enter(t._op)))
        grads = walk(ys, [halves[1] for _, halves in states.values()], [*xs, *invariants])
        carried: dict[int, Tensor] = {}
        for i, (x, g) in zip(states, zip(xs, grads, strict=False), strict=True):
            carried[i] = _dense(apply("ZerosLike", states[i][1][1]) if g is None else g)
            carried[i].set_shape(x.shape)
        outside = zip(invariants, grads[len(xs) :], strict=True)
        return carried, {x: g for x, g in outside if g is not None}

    def _accumulate(self, grads: dict[Tensor, Gradient]) -> dict[Tensor, Tensor]:
        """Adds up, over the iterations, the gradients of the tensors from outside."""
        loop = self.loop
        sums: dict[Tensor, Tensor] = {}
        for inside, rows in grads.items():
            outside = inside._op._inputs[0]
            with name_scope(inside._op.name + "_grad"):
                grad = _dense(rows)
                with inside_of(grad.graph, loop.outer_context):
                    zeros = _zeros_for(outside, grad)
                merged = loop.add_merge(loop.add_variable(zeros, name="b_acc"))
                if outside.dtype.name != "resource":
                    merged._shape = outside.shape
                halves = switch(merged, loop._pivot)
                loop.close(merged, apply("AddV2", halves[1], grad, name="Add"))
                sums[outside] = apply("Exit", halves[0], name="b_acc")
                sums[outside]._shape = merged.shape
        return sums

    # -- values of the forward loop, in the gradient loop --

    def forward_value(self, loop: WhileContext, tensor: Tensor) -> Tensor | None:
        """The tensor to use in the gradient loop for one of the forward loop; None for any other tensor."""
        context = output_context(tensor._op)
        if while_context(context) is not self.forward:
            return None
        # The handle of a variable is the same in every turn, under whatever name a function has it.
        while tensor.dtype.name == "resource" and tensor._op.type == "Identity":
            tensor = tensor._op._inputs[0]
        if is_constant_enter(tensor._op):
            return loop.AddValue(tensor._op._inputs[0])
        known = copied_constant(tensor) if tensor._op.type == "Const" else None
        if known is not None:
            return known
        return self._popped(loop, tensor, context)

    def _popped(self, loop: WhileContext, tensor: Tensor, context: ControlFlowContext | None) -> Tensor:
        """Pushes a tensor of the forward loop on a stack in each iteration; the tensor that pops it."""
        graph = tensor.graph
        forward = self.forward
        with control_dependencies(None), inside_of(graph, self.called_in):
            stack = apply("StackV2", constant(-1, "int32"), elem_type=tensor.dtype.base_dtype, name="f_acc")
        with control_dependencies(None), inside_of(graph, context):
            pushed = apply("StackPushV2", stack, tensor, swap_memory=forward.swap_memory)
        pushed._op._add_control_input(self.counted)
        self._keep(pushed._op, context)
        with control_dependencies(None), inside_of(graph, loop):
            handle = loop.AddValue(stack)
            for branch in _branches(context, forward):
                handle = switch(handle, loop.AddValue(branch.pred))[branch.branch]
            popped = apply("StackPopV2", handle, elem_type=tensor.dtype.base_dtype)
            popped.set_shape(tensor.shape)
        popped._op._add_control_input(self.popped)
        self.synchronize(popped._op)
        return popped

    def _keep(self, push: Operation, context: ControlFlowContext | None) -> None:
        """Makes the forward counter wait for every push, so that no iteration leaves one out."""
        if not _branches(context, self.forward):
            self.pushed._add_control_input(push)
            return
        if self.forward_sync is None:  # a trigger fires even if the push was in a branch not taken
            self.forward_sync = _trigger(self.forward, "f_sync")
            self.pushed._add_control_input(self.forward_sync)
        self.forward_sync._add_control_input(push)

    def synchronize(self, last: Operation) -> None:
        """Makes the backward counter wait for every pop: iterations may not overtake one another."""
        if self.sync is None:
            self.sync = _trigger(self.loop, "b_sync")
            self.next_count._add_control_input(self.sync)
        self.sync._add_control_input(last)


def _trigger(context: WhileContext, name: str) -> Operation:
    """An operation in a loop to wait for, which itself waits for nothing yet."""
    with control_dependencies(None), inside_of(get_default_graph(), context):
        result = apply_op("ControlTrigger", name=name)
    result._control_inputs = []
    return result


class inside_of:
    """Makes operations in a given control flow context, whatever surrounds."""

    def __init__(self, graph: Graph, context: ControlFlowContext | None) -> None:
        self.graph, self.context = graph, context

    def __enter__(self) -> None:
        self.before = self.graph._get_control_flow_context()
        self.graph._set_control_flow_context(self.context)

    def __exit__(self, *error: Any) -> None:
        self.graph._set_control_flow_context(self.before)


def _branches(context: ControlFlowContext | None, loop: WhileContext) -> list[CondContext]:
    """The branches around a context inside a loop, outermost first."""
    branches = []
    while context is not None and context is not loop:
        if isinstance(context, CondContext):
            branches.append(context)
        context = context.outer_context
    return branches[::-1]


def _initial(grad: TensorLike, result: Tensor) -> Tensor:
    if grad is not None:
        return _dense(grad)
    return apply("ZerosLike", result)


# Zeros of fewer elements are a constant, which costs no operation in each run; larger ones would fill the graph.
_MAX_CONSTANT_ELEMENTS = 1024


def _zeros_for(outside: Tensor, grad: Tensor) -> Tensor:
    dtype = grad.dtype.base_dtype
    if outside.dtype.name == "resource":
        return apply("Fill", apply("VariableShape", outside), constant(0, dtype), name="b_acc")
    if outside.shape.is_fully_defined() and (outside.shape.num_elements() or 0) < _MAX_CONSTANT_ELEMENTS:
        return constant(np.zeros(outside.shape.as_list(), dtype.np_dtype), name="b_acc")
    return apply("ZerosLike", outside)
