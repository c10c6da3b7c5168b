"""Control flow contexts: the branch or loop in which operations are made.

A context looks at every operation made inside it. Values from outside come in through a Switch (a branch) or
an Enter (a loop), and operations without inputs are tied to the context's pivot, so that nothing inside runs
unless the branch is taken or the iteration happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, apply_list, constant
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, get_default_graph
from tensorfleet.ops.control.nodes import is_constant_enter, is_enter, is_exit, is_switch

# A larger constant is brought into a context instead: each copy takes memory in the graph.
_MAX_COPIED_ELEMENTS = 1024


def output_context(op: Operation) -> ControlFlowContext | None:
    """The context in which an operation's outputs are used: outside of the loop for an Exit."""
    context: ControlFlowContext | None = op._control_flow_context
    return context.outer_context if context is not None and is_exit(op) else context


def while_context(context: ControlFlowContext | None) -> ControlFlowContext | None:
    """The innermost loop that a context lies in, or None."""
    while context is not None and not context.IsWhileContext():
        context = context.outer_context
    return context


def lies_in(context: ControlFlowContext | None, outer: ControlFlowContext) -> bool:
    """Whether a context is another, or lies in it."""
    while context is not outer:
        if context is None:
            return False
        context = context.outer_context
    return True


@export("python.ops.control_flow_util.CheckInputFromValidContext")
def check_use(op: Operation, input_op: Operation) -> None:
    """ValueError when an operation uses a tensor from a loop that it does not lie in."""
    mine, theirs = while_context(op._control_flow_context), while_context(output_context(input_op))
    if theirs is None or lies_in(mine, theirs):
        return
    if mine is None and (is_enter(op) or is_switch(op)):  # it gets its context later
        return
    if mine is not None and _of_one_gradient(mine, theirs):
        return
    why = f"'{input_op.name}' is in a while loop" if mine is None else "they are in different while loops"
    raise ValueError(
        f"Cannot use '{input_op.name}' as input to '{op.name}' because {why}. See info log for more details."
    )


def _of_one_gradient(mine: ControlFlowContext, theirs: ControlFlowContext) -> bool:
    """Whether one of two loops computes the gradient of the other, or of one in or around it."""
    if mine.grad_state is not None:
        forward = mine.grad_state.forward
        if lies_in(forward, theirs) or forward is theirs.outer_context:
            return True
    return theirs.grad_state is not None and theirs.grad_state.forward is mine


@export("python.ops.control_flow_ops.ControlFlowContext")
class ControlFlowContext:
    """A branch of a cond, or a loop, while its operations are made."""

    def __init__(self, name: str) -> None:
        self._outer: ControlFlowContext | None = get_default_graph()._get_control_flow_context()
        self._name = get_default_graph().unique_name(name)
        self._entered: list[ControlFlowContext | None] = []
        self._known: set[Tensor] = set()  # tensors that may be used inside as they are
        self._captured: dict[Tensor, Tensor] = {}  # tensors from outside, and their copies inside
        self._pivot: Any = None
        self._nested: list[ControlFlowContext] = []
        if self._outer is not None:
            self._outer._nested.append(self)

    name = readonly("_name", "The name, unique in the graph.")

    @property
    def outer_context(self) -> ControlFlowContext | None:
        """The context around this one."""
        return self._outer

    @property
    def grad_state(self) -> Any:
        """The `LoopGradient` that this context is part of, or None."""
        return None if self._outer is None else self._outer.grad_state

    @property
    def back_prop(self) -> bool:
        """Whether gradients flow through."""
        return True if self._outer is None else self._outer.back_prop

    def IsWhileContext(self) -> bool:
        """Whether this is a loop."""
        return False

    def IsCondContext(self) -> bool:
        """Whether this is a branch."""
        return False

    def IsXLAContext(self) -> bool:
        """Whether this marks operations for XLA."""
        return False

    def Enter(self) -> None:
        """Makes this the context of new operations."""
        graph = get_default_graph()
        self._entered.append(graph._get_control_flow_context())
        graph._set_control_flow_context(self)

    def Exit(self) -> None:
        """Ends what `Enter` began."""
        get_default_graph()._set_control_flow_context(self._entered.pop())

    def __enter__(self) -> Self:
        self.Enter()
        return self

    def __exit__(self, *error: Any) -> None:
        self.Exit()

    def ExitResult(self, result: Iterable[Tensor]) -> None:
        """Makes results known to the context around."""
        if self._outer is not None:
            for t in result:
                self._outer._known.add(t)

    def GetWhileContext(self) -> ControlFlowContext | None:
        """The innermost loop around."""
        return while_context(self)

    def GetControlPivot(self) -> Any:
        """The tensor that operations without inputs wait for."""
        return self._pivot

    def check_user(self, op: Operation, maker: Operation) -> None:
        """Called when an operation elsewhere uses the output of `maker`, in this context; ValueError if it may not."""
        check_use(op, maker)

    def AddInnerOp(self, op: Operation) -> None:
        """Called for operations made in a context inside this one."""
        if self._outer is not None:
            self._outer.AddInnerOp(op)

    def AddValue(self, tensor: Tensor) -> Tensor:
        """The tensor to use for `tensor` inside this context."""
        return tensor

    def AddOp(self, op: Operation) -> None:
        """Fits a new operation into this context."""
        for i, t in enumerate(op._inputs):
            inside = self.AddValue(t)
            if inside is not t:
                op._update_input(i, inside)
        self._drop_outer_dependencies(op)
        if not self._tied(op):
            op._add_control_input(self.GetControlPivot()._op)
        context: ControlFlowContext | None = self
        while context is not None:  # the contexts around must not bring these tensors in from outside
            context._known.update(op._outputs)
            context = context.outer_context
        op.graph.prevent_fetching(op)
        for t in op._outputs:
            op.graph.prevent_feeding(t)
        if self._outer is not None:
            self._outer.AddInnerOp(op)

    def _tied(self, op: Operation) -> bool:
        """Whether an operation cannot run unless this context does."""
        return bool(op._inputs) or any(in_context(c, self) for c in op._control_inputs)

    def _drop_outer_dependencies(self, op: Operation) -> None:
        """An operation in a loop cannot wait for one outside: it waits for the value's entry instead."""
        loop = self.GetWhileContext()
        if loop is None:
            return
        outside = [c for c in op._control_inputs if not in_context(c, loop, True)]
        if not outside:
            return
        op._control_inputs = [c for c in op._control_inputs if c not in outside]
        waited = [c._outputs[0] for c in outside if c._outputs]
        if waited and op.type not in ("Enter", "RefEnter", "Merge", "Switch", "NextIteration", "Exit"):
            with control_dependencies(None), self:
                op._add_control_inputs([apply("Identity", t)._op for t in waited])


def in_context(op: Operation, context: ControlFlowContext, by_output: bool = False) -> bool:
    """Whether an operation lies in a context, or in one inside it."""
    return lies_in(output_context(op) if by_output else op._control_flow_context, context)


@export("python.ops.control_flow_ops.XLAControlFlowContext")
class XLAControlFlowContext(ControlFlowContext):
    """Marks operations for XLA, which changes nothing: the runtime decides what to compile."""

    def __init__(self) -> None:
        super().__init__("XLAControlFlowContext")

    def IsXLAContext(self) -> bool:
        """Always true."""
        return True

    def AddOp(self, op: Operation) -> None:
        """Leaves a new operation as it is."""


@export("python.ops.control_flow_ops.CondContext")
class CondContext(ControlFlowContext):
    """One branch of a cond."""

    def __init__(
        self, pred: Any = None, pivot: Any = None, branch: int | None = None, name: str = "cond_text"
    ) -> None:
        super().__init__(name)
        self._pred = pred
        self._pivot = pivot
        self._branch = branch
        self._known.update((pred, pivot))
        if self._outer is not None:
            self._outer.AddValue(pred)

    pred = readonly("_pred", "The condition.")
    pivot = readonly("_pivot", "The tensor that operations without inputs wait for.")

    @property
    def branch(self) -> int:
        """1 for the branch taken when the condition holds, 0 for the other."""
        assert self._branch is not None
        return self._branch

    def IsCondContext(self) -> bool:
        """Always true."""
        return True

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The branch as a `CondContextDef`; None if it is not in the scope that is exported."""
        from tensorfleet.ops.control.protos import cond_to_proto

        return cond_to_proto(self, export_scope)

    @staticmethod
    def from_proto(context_def: Any, import_scope: str | None = None) -> CondContext:
        """The branch that a `CondContextDef` describes in the current graph."""
        from tensorfleet.ops.control.protos import cond_from_proto

        return cond_from_proto(context_def, import_scope)

    def AddValue(self, tensor: Tensor) -> Tensor:
        """The tensor to use for `tensor` inside this branch: the output of a Switch."""
        if tensor in self._known:
            return self._captured.get(tensor, tensor)
        outside = tensor if self._outer is None else self._outer.AddValue(tensor)
        with control_dependencies(None), colocate_with(outside._op, ignore_existing=True):
            inside = switch(outside, self._pred)[self.branch]
        _adopt(inside, self)
        self._known.update((tensor, outside, inside))
        self._captured[tensor] = self._captured[outside] = inside
        return inside


@export("python.ops.control_flow_ops.WhileContext")
class WhileContext(ControlFlowContext):
    """A loop."""

    def __init__(
        self,
        maximum_iterations: Tensor | None = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str = "while_context",
        grad_state: Any = None,
    ) -> None:
        super().__init__(name)
        self.maximum_iterations = maximum_iterations
        self.parallel_iterations = parallel_iterations
        self._back_prop = back_prop
        self.swap_memory = swap_memory
        self._grad_state = grad_state
        self._pivot_for_pred: Any = None
        self._pivot_for_body: Any = None
        #: for a gradient loop: values of the forward loop, and the tensors that pop them
        self.history: dict[Tensor, Tensor] = {}
        self.enters: list[Tensor] = []
        self.merges: list[Tensor] = []
        self.switches: list[list[Tensor]] = []
        self.nexts: list[Tensor] = []
        self.exits: list[Tensor] = []

    back_prop = readonly("_back_prop")
    grad_state = readonly("_grad_state")
    pivot = readonly("_pivot", "The loop's condition.")
    loop_enters = readonly("enters", "The loop variables as they enter.")
    loop_exits = readonly("exits", "The loop variables as they leave.")
    invariants = readonly("_captured", "The tensors from outside, and their copies inside.")

    def IsWhileContext(self) -> bool:
        """Always true."""
        return True

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The loop as a `WhileContextDef`; None if it is not in the scope that is exported."""
        from tensorfleet.ops.control.protos import while_to_proto

        return while_to_proto(self, export_scope)

    @staticmethod
    def from_proto(context_def: Any, import_scope: str | None = None) -> WhileContext:
        """The loop that a `WhileContextDef` describes in the current graph."""
        from tensorfleet.ops.control.protos import while_from_proto

        return while_from_proto(context_def, import_scope)

    def GetControlPivot(self) -> Any:
        """The operation that new operations of the loop wait for: in its body, or in its condition."""
        return self._pivot_for_body if self._pivot_for_body is not None else self._pivot_for_pred

    def _tied(self, op: Operation) -> bool:
        if op.type in ("Enter", "RefEnter") or self.GetControlPivot() is None:
            return True
        if any(in_context(c, self) for c in op._control_inputs):
            return True
        return bool(op._inputs) and not all(is_constant_enter(t._op) for t in op._inputs)

    def AddValue(self, tensor: Tensor) -> Tensor:
        """The tensor to use for `tensor` inside this loop: the output of an Enter."""
        if tensor in self._known:
            return self._captured.get(tensor, tensor)
        if self._grad_state is not None:
            forward: Tensor | None = self._grad_state.forward_value(self, tensor)
            if forward is not None:
                self._known.update((tensor, forward))
                self.history[tensor] = self._captured[tensor] = forward
                return forward
        outside = tensor if self._outer is None else self._outer.AddValue(tensor)
        if outside in self._captured:
            inside = self._captured[outside]
        else:
            with control_dependencies(None):
                inside = enter(outside, self._name, True, self.parallel_iterations)
            _adopt(inside, self)
            if self._outer is not None and is_constant_enter(outside._op):
                pivot = self._outer.GetControlPivot()
                if pivot is not None and not inside._op._control_inputs:
                    inside._op._add_control_input(pivot._op)
        self._known.update((tensor, outside, inside))
        self._captured[tensor] = self._captured[outside] = inside
        return inside

    # -- loop variables --

    def add_variable(self, initial: Tensor, name: str = "", shape: TensorShape | None = None) -> Tensor:
        """Adds a loop variable; the tensor it is in the loop's condition."""
        outside = initial if self._outer is None else self._outer.AddValue(initial)
        with control_dependencies(None):
            entered = enter(outside, self._name, False, self.parallel_iterations, name or "Enter")
        if shape is not None:
            entered._shape = shape
        self._wait_outside(entered._op, outside)
        _adopt(entered, self)
        self._known.add(entered)
        self.enters.append(entered)
        return entered

    def _wait_outside(self, op: Operation, outside: Tensor) -> None:
        """Makes the entry of a loop variable wait for the control dependencies around the whole loop."""
        for c in op.graph._control_inputs_for([outside]):
            if output_context(c) is self._outer and c is not outside._op:
                op._add_control_input(c)
        if self._outer is not None and not op._control_inputs and is_constant_enter(outside._op):
            pivot = self._outer.GetControlPivot()
            if pivot is not None:
                op._add_control_input(pivot._op)

    def add_merge(self, entered: Tensor, name: str = "Merge") -> Tensor:
        """The Merge of a loop variable, whose second input comes later (`close`)."""
        result = apply_list("Merge", [entered, entered], name=name)[0]
        result._shape = entered.shape
        self.merges.append(result)
        if self._pivot_for_pred is None:
            self._pivot_for_pred = result
        return result

    def gradient(
        self, grads: dict[int, Tensor], active: list[int], walk: Callable[..., list[Any]]
    ) -> list[tuple[Tensor, Any]]:
        """Builds the loop that computes this one's gradient; see `LoopGradient.build`."""
        from tensorfleet.ops.control.gradients import LoopGradient

        return LoopGradient(self).build(grads, active, walk)

    def close(self, merged: Tensor, value: Tensor) -> Tensor:
        """Sends the new value of a loop variable to the next iteration."""
        result = apply("NextIteration", value)
        merged._op._update_input(1, result)
        self.nexts.append(result)
        return result


def _adopt(tensor: Tensor, context: ControlFlowContext) -> None:
    """Puts an operation made outside of any context into one."""
    op = tensor._op
    op._set_control_flow_context(context)
    op.graph.prevent_fetching(op)
    around: ControlFlowContext | None = context
    while around is not None:  # a result of this context may be this very tensor
        around._known.update(op._outputs)
        around = around.outer_context
    for t in op._outputs:
        op.graph.prevent_feeding(t)


def enter(
    data: Tensor,
    frame: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> Tensor:
    """Brings a tensor into a loop."""
    kind = "RefEnter" if data.dtype._is_ref_dtype else "Enter"
    return apply(
        kind,
        data,
        frame_name=frame,
        is_constant=is_constant,
        parallel_iterations=parallel_iterations,
        name=name or kind,
    )


def switch(data: TensorLike, pred: TensorLike, name: str | None = None) -> list[Tensor]:
    """`data` in two branches: [when `pred` is false, when it is true]."""
    kind = "RefSwitch" if isinstance(data, Tensor) and data.dtype._is_ref_dtype else "Switch"
    return apply_list(kind, data, pred, name=name or "Switch")


def copied_constant(tensor: Tensor) -> Tensor | None:
    """A constant with the value of a tensor, made in the current context, when the value is known."""
    value = constant_value(tensor)
    if value is None or value.size > _MAX_COPIED_ELEMENTS:
        return None
    return constant(value, tensor.dtype.base_dtype)
