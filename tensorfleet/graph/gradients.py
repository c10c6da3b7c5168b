"""`tf.gradients`: walks back from the results to the inputs, adding each op's gradient to the graph."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tensorfleet.base.naming import export
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply, apply_list, apply_op, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.gradient_sources import inside
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, graph_of, name_scope
from tensorfleet.graph.topology import in_order

if TYPE_CHECKING:
    from tensorfleet.base.types import TensorLike
    from tensorfleet.graph.registry import Gradient, GradientFunction


@export("AggregationMethod")
class AggregationMethod:
    """How the gradients that reach a tensor along several paths are summed."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


@export("UnconnectedGradients")
class UnconnectedGradients(enum.Enum):
    """The gradient that `tf.gradients` gives for an input the result does not depend on."""

    NONE = "none"
    ZERO = "zero"


@export("gradients")
def gradients(
    ys: TensorLike,
    xs: TensorLike,
    grad_ys: TensorLike = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: TensorLike = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list[Any]:
    """The derivative of the sum of `ys` with respect to each of `xs`: Tensors, IndexedSlices or None."""
    try:
        unconnected = UnconnectedGradients(unconnected_gradients)
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected_gradients!r}") from None
    ys, xs = listed(ys), listed(xs)
    stops = listed(stop_gradients) if stop_gradients is not None else []
    given = [None] * len(ys) if grad_ys is None else listed(grad_ys)
    if len(given) != len(ys):
        raise ValueError(f"Passed {len(given)} grad_ys for {len(ys)} ys")
    if aggregation_method not in (None, 0, 1, 2):
        raise ValueError(f"Invalid aggregation_method specified {aggregation_method}.")
    with graph_of([*ys, *xs]).as_default(), name_scope(name, "gradients", [*ys, *xs, *stops]) as scope:
        sources = [inside(x) for x in xs]
        targets = [to_tensor(y, name="y") for y in ys]
        walk = _Walk(targets, sources, [inside(s) for s in stops], scope)
        walk.colocate = colocate_gradients_with_ops
        walk.gate = gate_gradients
        walk.method = aggregation_method
        for i, g in enumerate(given):
            walk.seed(i, g)
        walk.run()
        result = [walk.result(s) for s in sources]
        if unconnected is UnconnectedGradients.ZERO:
            result = [
                apply("ZerosLike", to_tensor(x)) if g is None else g for g, x in zip(result, xs, strict=True)
            ]
        return result


def listed(values: object) -> list[Any]:
    """Several values as a list, and one alone as a list of it."""
    return list(values) if isinstance(values, (list, tuple)) else [values]


class _Loop(Protocol):
    """The parts of a while loop's context that a walk needs. The class itself is in ops/control."""

    exits: list[Tensor]
    enters: list[Tensor]
    nexts: list[Tensor]
    switches: list[list[Tensor]]
    invariants: dict[Tensor, Tensor]
    back_prop: bool
    grad_state: object

    def gradient(
        self, grads: dict[int, Tensor | IndexedSlices], active: list[int], walk: Callable[..., list[Gradient]]
    ) -> Iterable[tuple[Tensor, Tensor | IndexedSlices]]:
        """Builds the loop that goes back through this one; the gradients of all that enters it."""


_Node: TypeAlias = "Operation | _Loop"


class _Walk:
    """One call of `gradients`."""

    def __init__(
        self,
        ys: Sequence[Tensor],
        xs: Sequence[Tensor],
        stops: Sequence[Tensor],
        scope: str,
        loop: _Loop | None = None,
    ) -> None:
        self.ys = list(ys)
        self.xs = list(xs)
        self.scope = scope
        self.colocate = False
        self.gate = False
        self.method: int | None = None
        self.stops: set[_Node] = {t._op for t in stops}
        self._kept = {id(t) for t in xs}
        #: the loop that everything walked over lies in; loops inside it are taken as one piece each
        self.loop = loop if loop is not None or not self.ys else _loop_of(self.ys[0])
        self.between = self._between()
        self.pending: dict[Tensor, list[Tensor | IndexedSlices]] = {}
        self.final: dict[Tensor, Tensor | IndexedSlices] = {}

    def _node(self, op: Operation) -> _Node:
        """An operation, or the loop around it that this walk takes as one piece."""
        context = op._control_flow_context
        node: _Node = op
        while context is not None and context is not self.loop:
            if context.IsWhileContext():
                node = context
            context = context.outer_context
        return node if context is self.loop else op

    def _between(self) -> set[_Node]:
        """The operations, and loops, on some path from xs to ys."""
        from_xs: set[_Node] = set()
        stack: list[Operation] = [c for x in self.xs if _trainable(x) for c in x._consumers]
        while stack:
            op = stack.pop()
            node = self._node(op) if op._control_flow_context is not None else op
            # Inside its own loop a walk goes through one iteration: it does not follow the back edge.
            if node in from_xs or (op.type == "NextIteration" and node is op):
                continue
            from_xs.add(node)
            for t in _results(node):
                if _trainable(t):
                    stack.extend(t._consumers)
        # Kept apart from the intersection below: a loop's gradient needs to know which of its inputs lead to xs.
        self.reached = from_xs
        reach: set[_Node] = set()
        back: list[_Node] = [self._node(y._op) for y in self.ys]
        while back:
            node = back.pop()
            if node in from_xs and node not in reach:
                reach.add(node)
                back.extend(self._node(t._op) for t in _arguments(node))
        return reach

    def seed(self, i: int, given: TensorLike) -> None:
        """Starts at the `i`-th result: with the caller's gradient, else with ones."""
        y = self.ys[i]
        if given is None:
            if y.dtype.is_complex:
                raise TypeError(f"Gradients of complex tensors must set grad_ys (y.dtype = {y.dtype})")
            if not _trainable(y) and not y.dtype.is_integer:
                raise TypeError(
                    f"Cannot compute gradients of a tensor of type {y.dtype.name}: {y.name}. Only floating point "
                    "and complex tensors have gradients; use tf.cast."
                )
            with self._near(y._op):
                grad: Tensor | IndexedSlices = apply(
                    "Fill", _shape_of(y), constant(1, y.dtype.base_dtype, name=f"grad_ys_{i}")
                )
        elif isinstance(given, IndexedSlices):
            grad = given
        else:
            grad = to_tensor(
                given, dtype=None if isinstance(given, Tensor) else y.dtype.base_dtype, name="grad_y"
            )
            if grad.dtype.base_dtype != y.dtype.base_dtype:
                raise ValueError(
                    f"Gradient type {grad.dtype.name} generated for tensor {y} with type {y.dtype.name} must match."
                )
            # Named as one of the gradients, so that a TensorArray finds whose it is.
            grad = apply("Identity", grad, name=f"grad_ys_{i}")
        self.pending.setdefault(y, []).append(grad)

    def run(self) -> None:
        """Visits the operations between, each after all its users."""
        for node in self._order():
            if not isinstance(node, Operation):
                self._visit_loop(node)
                continue
            grads = [self._summed(t) for t in node._outputs]
            if node in self.stops or all(g is None for g in grads):
                continue
            self._visit(node, grads)

    def _order(self) -> list[_Node]:
        """The operations between, users first, otherwise the last made first."""
        # Mostly every operation is newer than its inputs, and a sort by age replaces the topological one.
        if not any(map(_out_of_order, self.between)):
            return sorted(self.between, key=_position, reverse=True)
        users: dict[_Node, set[_Node]] = {node: set() for node in self.between}
        for node in self.between:
            for t in _arguments(node):
                source = self._node(t._op)
                if source is not node and source in users:
                    users[source].add(node)
        return in_order(users, lambda node: -_position(node))

    def _visit_loop(self, loop: _Loop) -> None:
        """The gradient of a whole loop is a loop."""
        reached = {i: self._summed(t) for i, t in enumerate(loop.exits) if _trainable(t)}
        used = {i for i in reached if any(self._node(c) in self.between for c in loop.exits[i]._consumers)}
        if not any(g is not None for g in reached.values()) or not loop.back_prop or loop in self.stops:
            return
        grads = {
            i: apply("ZerosLike", loop.exits[i]) if g is None else g
            for i, g in reached.items()
            if g is not None or i in used  # what lies behind a stop_gradient gets zeros, as in TensorFlow
        }
        if loop.grad_state is not None:
            raise TypeError("Second-order gradient for while loops not supported.")
        active = self._active(loop, grads)
        if active is None:
            return

        def walk(ys: list[Tensor], given: list[Tensor], xs: list[Tensor]) -> list[Gradient]:
            inner = _Walk(ys, xs, [], self.scope, loop)
            inner.colocate, inner.gate, inner.method = self.colocate, self.gate, self.method
            for i, g in enumerate(given):
                inner.seed(i, g)
            inner.run()
            return [inner.result(x) for x in xs]

        for t, g in loop.gradient(grads, active, walk):
            if self._node(t._op) in self.reached or id(t) in self._kept:
                self.pending.setdefault(t, []).append(g)

    def _active(self, loop: _Loop, grads: Collection[int]) -> list[int] | None:
        """The loop variables that carry a gradient from one iteration to the one before."""
        count = len(loop.exits)
        nexts = [t._op._inputs[0] for t in loop.nexts]
        movable = [i for i in range(count) if _trainable(loop.exits[i])]
        starts = {i for i in movable if self.touches(loop.enters[i]._op._inputs[0])}
        wanted = [
            t for out, t in loop.invariants.items() if t._op.type in ("Enter", "RefEnter") and _trainable(t)
        ]
        wanted = [t for t in wanted if self.touches(t._op._inputs[0])]
        # Which loop variable influences which in one iteration; the closures below follow that over all iterations.
        inner = {i: _Walk(nexts, [loop.switches[i][1]], [], self.scope, loop) for i in movable}
        feeds = {i: {j for j in movable if inner[i].touches(nexts[j])} for i in movable}
        outside = _Walk(nexts, wanted, [], self.scope, loop)
        from_outside = starts | {j for j in movable if outside.touches(nexts[j])}
        from_outside = _closure(from_outside, feeds)
        towards = _closure(set(grads), {j: {i for i in movable if j in feeds[i]} for j in movable})
        active = sorted(from_outside & towards)
        return active or None

    def touches(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on one of the xs."""
        return id(tensor) in self._kept or self._node(tensor._op) in self.reached

    def _visit(self, op: Operation, grads: list[Gradient]) -> None:
        self._check_loop(op)
        function = self._function(op)
        if function is None:
            return
        with name_scope(op.name + "_grad"), self._near(op), op.graph._original_op(op):
            filled = grads
            # Gradient functions expect a tensor for each output: outputs that the result does not use get zeros.
            if not getattr(function, "accepts_none", False):
                filled = [
                    apply("ZerosLike", t) if g is None and _trainable(t) and not t.dtype._is_ref_dtype else g
                    for g, t in zip(grads, op._outputs, strict=True)
                ]
            given: Any = function(op, *filled)
            results: list[Gradient] = list(given) if isinstance(given, (list, tuple)) else [given]
            if len(results) != len(op._inputs):
                raise ValueError(
                    f"Num gradients {len(results)} generated for op {op.name} ({op.type}) do not match num inputs "
                    f"{len(op._inputs)}"
                )
            if self.gate and sum(r is not None for r in results) > 1:
                results = _gated(results)
        for t, g in zip(op._inputs, results, strict=True):
            if g is not None:
                _settle_shape(op, t, g)
                self.pending.setdefault(t, []).append(g)

    def _check_loop(self, op: Operation) -> None:
        """Raises ValueError when a walk in the body of a loop leads to the loop's initial values."""
        if op.type not in ("Switch", "RefSwitch") or op._inputs[1]._op.type != "LoopCond":
            return
        if op._control_flow_context is not op.graph._get_control_flow_context():
            return
        sources, seen, back = {x._op for x in self.xs}, set(), [op]
        while back[-1] not in sources:
            last = back.pop()
            seen.add(last)
            back += [t._op for t in last._inputs if t._op in self.between | sources and t._op not in seen]
        raise ValueError(
            f"Cannot compute gradient inside while loop with respect to op '{back[-1].name}'. We do not support taking "
            "the gradient wrt or through the initial value of a loop variable. Gradients can be computed through loop "
            "invariants or wrt the input parameters to the loop body."
        )

    def _function(self, op: Operation) -> GradientFunction | None:
        if op._gradient_function is not None:
            return op._gradient_function
        override = op._attrs.get("_gradient_op_type")
        if override:
            return registry.named_gradient(override.decode())
        if registry.has_named_gradient(op.type):
            return registry.named_gradient(op.type)
        if not op.spec.differentiable:
            return None
        if op.spec.gradient is not None:
            return op.spec.gradient
        if not op.spec.pure:
            if any(id(t) in self._kept or t._op in self.between for t in op._inputs if _trainable(t)):
                raise LookupError(
                    f"No gradient defined for operation '{op.name}' (op type: {op.type}). Use tf.stop_gradient "
                    "around it, or tf.RegisterGradient to define one."
                )
            return None
        return vjp

    def _near(self, op: Operation) -> AbstractContextManager[None]:
        return colocate_with(op) if self.colocate else nullcontext()

    def _summed(self, tensor: Tensor) -> Gradient:
        grads = self.pending.pop(tensor, None)
        if grads is None:
            return self.final.get(tensor)
        total = grads[0] if len(grads) == 1 else self._sum(tensor, grads)
        # One of xs may be an input of another: its gradient is kept when the walk has passed it.
        if id(tensor) in self._kept:
            self.final[tensor] = total
        return total

    def result(self, tensor: Tensor) -> Gradient:
        """The gradient that reached one of the sources."""
        return self._summed(tensor)

    def _sum(self, tensor: Tensor, grads: list[Tensor | IndexedSlices]) -> Tensor | IndexedSlices:
        with self._near(tensor._op):
            slices = [g for g in grads if isinstance(g, IndexedSlices)]
            if len(slices) == len(grads):
                return _joined(slices)
            dense = [to_tensor(g) for g in grads]
            if self.method == AggregationMethod.EXPERIMENTAL_TREE:
                total = dense[0]
                for g in dense[1:]:
                    total = apply("AddN", [total, g])
                return total
            # First on each device, then between devices: one tensor per device crosses the network.
            return _added([_added(same, same[0]._op) for same in _by_device(dense)])


def _by_device(tensors: list[Tensor]) -> list[list[Tensor]]:
    """Tensors in groups of those on one device."""
    groups: dict[str, list[Tensor]] = {}
    for t in tensors:
        groups.setdefault(t.device, []).append(t)
    return [groups[device] for device in sorted(groups)]


def _added(tensors: list[Tensor], beside: Operation | None = None) -> Tensor:
    """The sum of tensors, colocated with an operation regardless of the blocks around."""
    if len(tensors) == 1:
        return tensors[0]
    with nullcontext() if beside is None else colocate_with(beside, ignore_existing=True):
        return apply("AddN", tensors)


def vjp(op: Operation, *grads: Tensor | None) -> list[Gradient]:
    """The gradient of any pure op: the vector-Jacobian product of its kernel, as an op of its own."""
    pairs = zip(grads, op._outputs, strict=True)
    given = [apply("ZerosLike", t) if g is None else g for g, t in pairs if _moves(t)]
    kinds = [t.dtype.base_dtype for t in op._inputs if _moves(t)]
    results = iter(apply_list("FleetVjp", list(op._inputs), given, Tout=kinds, forward=op.name))
    return [next(results) if _moves(t) else None for t in op._inputs]


def _moves(tensor: Tensor) -> bool:
    return tensor.dtype.base_dtype.is_floating or tensor.dtype.base_dtype.is_complex


def _gated(results: list[Gradient]) -> list[Gradient]:
    """The gradients of one op, none available before all are."""
    with name_scope("tuple"):
        with control_dependencies([r for r in results if r is not None]):
            gate = apply_op("NoOp", name="group_deps")
        with control_dependencies([gate]):
            return [_passed(r) for r in results]


def _passed(grad: Gradient) -> Gradient:
    if grad is None:
        return None
    if isinstance(grad, IndexedSlices):
        values = apply("Identity", grad.values, name="control_dependency")
        return IndexedSlices(values, grad.indices, grad.dense_shape)
    return apply("Identity", grad, name="control_dependency")


def _shape_of(y: Tensor) -> Tensor:
    if y.shape.is_fully_defined():
        return constant(y.shape.as_list(), "int32", name="Shape")
    return apply("Shape", y)


def _joined(slices: list[IndexedSlices]) -> IndexedSlices:
    """Several sparse gradients as one, rows one after another."""
    kinds = {s.indices.dtype.base_dtype for s in slices}
    indices = [s.indices for s in slices]
    if len(kinds) > 1:
        indices = [apply("Cast", i, DstT="int64") for i in indices]
    return IndexedSlices(
        apply("ConcatV2", [s.values for s in slices], 0),
        apply("ConcatV2", indices, 0),
        slices[0].dense_shape,
    )


def _out_of_order(node: _Node) -> bool:
    """Whether a node may be older than its inputs: it is or is in a loop or branch, or an input was replaced."""
    if not isinstance(node, Operation) or node._control_flow_context is not None:
        return True
    return any(t._op._id > node._id for t in node._inputs)


def _position(node: _Node) -> int:
    return node._id if isinstance(node, Operation) else max(t._op._id for t in node.exits)


def _results(node: _Node) -> Sequence[Tensor]:
    return node._outputs if isinstance(node, Operation) else node.exits


def _arguments(node: _Node) -> list[Tensor]:
    """The inputs of an operation; for a loop, all that enters it."""
    if isinstance(node, Operation):
        return list(node._inputs)
    captured = [t._op._inputs[0] for t in node.invariants.values() if t._op.type in ("Enter", "RefEnter")]
    return [t._op._inputs[0] for t in node.enters] + captured


def _loop_of(tensor: Tensor) -> _Loop | None:
    """The loop that a tensor lies in."""
    context = tensor._op._control_flow_context
    if context is not None and tensor._op.type in ("Exit", "RefExit"):
        context = context.outer_context
    while context is not None and not context.IsWhileContext():
        context = context.outer_context
    loop: _Loop | None = context
    return loop


def _closure(start: set[int], follow: dict[int, set[int]]) -> set[int]:
    result, stack = set(start), list(start)
    while stack:
        for j in follow[stack.pop()]:
            if j not in result:
                result.add(j)
                stack.append(j)
    return result


def _trainable(tensor: Tensor) -> bool:
    base = tensor.dtype.base_dtype
    return base.is_floating or base.is_complex or base.name in ("resource", "variant")


def _settle_shape(op: Operation, tensor: Tensor, grad: Gradient) -> None:
    """Gives a gradient the static shape of its input."""
    if not isinstance(grad, Tensor) or tensor.dtype.name == "resource":
        return
    if not grad.shape.is_compatible_with(tensor.shape):
        raise ValueError(
            f"Incompatible shapes between op input and calculated input gradient. Forward operation: {op.name}. "
            f"Original input shape: {tensor.shape}. Calculated input gradient shape: {grad.shape}"
        )
    grad.set_shape(tensor.shape)
