"""Initial values that depend on other variables: those may not have their values yet when one is asked for."""

from __future__ import annotations

from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import get
from tensorfleet.graph.scopes import GraphKeys

_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
# These look at a variable on purpose, or are read as they are.
_LEFT_ALONE = frozenset({"IsVariableInitialized", "VarIsInitializedOp", "ReadVariableOp", "If"})


def guarded(initial: Tensor, scope: str) -> Tensor:
    """`initial`, with an uninitialized variable standing for its own initial value.

    Operations between such a variable and `initial` are copied, with names that end in `_` and `scope`.
    """
    ancestors = _ancestors(initial.op)
    # NextIteration closes a cycle, which cannot be copied operation by operation.
    if ancestors.isdisjoint(_VARIABLES) or "NextIteration" in ancestors:
        return initial
    return _Copies(initial.graph, scope).of(initial)


def _ancestors(op: Operation) -> set[str]:
    """The types of an operation and of all it is computed from."""
    seen, waiting = {op}, [op]
    while waiting:
        for t in waiting.pop()._inputs:
            if t.op not in seen:
                seen.add(t.op)
                waiting.append(t.op)
    return {o.type for o in seen}


class _Copies:
    """The copies of operations for one variable's initial value."""

    def __init__(self, graph: Graph, scope: str) -> None:
        self._graph = graph
        self._scope = scope
        self._made: dict[Operation, Operation] = {}

    def of(self, tensor: Tensor) -> Tensor:
        """The tensor to read in place of this one."""
        op = self._made.get(tensor.op)
        if op is None:
            op = self._made[tensor.op] = self._of_op(tensor.op)
        return tensor if op is tensor.op else op._outputs[tensor.value_index]

    def _of_op(self, op: Operation) -> Operation:
        if op.type in _LEFT_ALONE:
            return op
        if op.type in _VARIABLES:
            return self._initialized(op)
        inputs = [self.of(t) for t in op._inputs]
        if all(new is old for new, old in zip(inputs, op._inputs, strict=True)):
            return op
        spec = get("Switch") if op.type == "RefSwitch" else op.spec
        types = [t.dtype.base_dtype for t in op._outputs]
        name = f"{op.name}_{self._scope}"
        if name.rstrip("/") in self._graph._by_name:
            name = name.rstrip("/")
        # The copy works on values, so it need not be with the variable that the original stays with.
        attrs = {key: value for key, value in op._attrs.items() if key != "_class"}
        return self._graph.add_op(spec, inputs, attrs, types, name)

    def _initialized(self, op: Operation) -> Operation:
        for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
            for variable in self._graph.get_collection(key):
                if getattr(variable, "op", None) is op:
                    initialized: Tensor = variable.initialized_value()
                    return initialized.op
        return op
