"""`tf.while_loop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tensorfleet.base import nest
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys, get_default_graph, name_scope
from tensorfleet.ops.control.cond import flow_of, with_summaries
from tensorfleet.ops.control.context import WhileContext, switch
from tensorfleet.ops.state.tensor_array import TensorArray, with_flow
from tensorfleet.ops.type_specs import RaggedTensorSpec, TypeSpec

#: A function of the loop variables, in their structure.
LoopFunction: TypeAlias = Callable[..., Any]


@export("while_loop")
def while_loop(
    cond: LoopFunction,
    body: LoopFunction,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: TensorLike = None,
    return_same_structure: bool = False,
) -> Any:
    """Calls `body` on the loop variables as long as `cond` of them holds, when it is run.

    Both functions are called once, to build the graph. `shape_invariants` gives shapes for variables whose
    shape changes from one iteration to the next.
    """
    with name_scope(name, "while", loop_vars):
        _check_arguments(cond, body, loop_vars, parallel_iterations)
        single = not isinstance(loop_vars, (list, tuple))
        if single:
            loop_vars = [loop_vars]
        if shape_invariants is not None:
            if single:
                shape_invariants = [shape_invariants]
            nest.assert_same_structure(loop_vars, shape_invariants, check_types=False)
        if maximum_iterations is not None:
            maximum_iterations = _limit(maximum_iterations)
        context = WhileContext(maximum_iterations, parallel_iterations, back_prop, swap_memory)
        if maximum_iterations is not None:
            alone = len(loop_vars) == 1 and not return_same_structure
            cond, body, loop_vars, shape_invariants = _counted(
                cond, body, loop_vars, shape_invariants, maximum_iterations, alone
            )
        if context.outer_context is None:
            get_default_graph().add_to_collection(GraphKeys.WHILE_CONTEXT, context)
        last = build(context, cond, body, loop_vars, shape_invariants)
        if maximum_iterations is not None:
            return last[1][0] if single and return_same_structure else last[1]
        if return_same_structure:
            return last[0] if single else last
        # One tensor comes alone, wherever in the structure it is; all else comes in the structure.
        return last[0] if len(nest.flatten(last, expand_composites=True)) == 1 else last


def _check_arguments(cond: object, body: object, loop_vars: object, parallel_iterations: int) -> None:
    if not loop_vars:
        raise ValueError("No loop variables provided.")
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")


def _limit(value: TensorLike) -> Tensor:
    limit = to_tensor(value, name="maximum_iterations")
    if limit.shape.rank not in (0, None):
        raise ValueError(f"maximum_iterations must be a scalar, saw shape: {limit.shape}")
    return limit


def _counted(
    cond: LoopFunction, body: LoopFunction, loop_vars: Any, shapes: Any, limit: Tensor, alone: bool
) -> tuple[LoopFunction, LoopFunction, Any, Any]:
    """The same loop with a counter as its first variable; `alone` for a single variable without its list."""
    counter = constant(0, limit.dtype, name="iteration_counter")

    def go_on(i: Tensor, inner: Any) -> Tensor:
        return apply("LogicalAnd", i < limit, cond(inner) if alone else cond(*inner))

    def step(i: Tensor, inner: Any) -> tuple[Tensor, Any]:
        counted = i + 1
        result = body(inner) if alone else body(*inner)
        if alone and isinstance(result, (list, tuple)) and len(result) == 1 and not nest.is_nested(inner):
            result = result[0]
        return counted, result

    if alone:
        loop_vars = loop_vars[0]
        shapes = None if shapes is None else shapes[0]
    return go_on, step, (counter, loop_vars), None if shapes is None else (TensorShape(()), shapes)


def build(context: WhileContext, cond: LoopFunction, body: LoopFunction, loop_vars: Any, shapes: Any) -> Any:
    """Builds the nodes of a loop; the variables as they leave it, arranged as the body returned them."""
    originals = nest.flatten(loop_vars)
    initial = [to_tensor(v) for v in nest.flatten([flow_of(v) for v in originals], expand_composites=True)]
    wanted = _invariants(originals, shapes)
    with context:
        entered = []
        for t, shape in zip(initial, wanted, strict=True):
            entered.append(context.add_variable(t, shape=_checked(t, shape)))
        merged = [context.add_merge(e) for e in entered]
        pred = to_tensor(cond(*_packed(loop_vars, originals, merged)))
        context._pivot = apply("LoopCond", pred, name="LoopCond")
        switched = [switch(m, context._pivot) for m in merged]
        context.switches += switched
        inside = [apply("Identity", s[1]) for s in switched]
        context._pivot_for_body = inside[0]  # ties operations without inputs to the iteration
        result = with_summaries(lambda: body(*_packed(loop_vars, originals, inside)))
        if not nest.is_nested(result) or isinstance(result, CompositeTensor):
            result = [result]
        nest.assert_same_structure(
            list(_packed(loop_vars, originals, inside)), list(result), check_types=False
        )
        flat = nest.flatten([flow_of(v) for v in nest.flatten(result)], expand_composites=True)
        values = [_next(v, m) for v, m in zip(flat, merged, strict=True)]
        for m, v, shape in zip(merged, values, wanted, strict=True):
            _check_shape(m, v, shape)
            context.close(m, v)
        exits = [apply("Exit", s[0]) for s in switched]
        context.exits += exits
    context.ExitResult(exits)
    for t in exits:
        if context.outer_context is None:
            t.graph._unfetchable.discard(t._op)
    return _packed(result, nest.flatten(result), exits)


def _next(value: TensorLike, merged: Tensor) -> Tensor:
    if isinstance(value, Operation):
        raise TypeError(f"The body of a loop returned the operation '{value.name}' where a tensor is needed.")
    tensor = to_tensor(value)
    if tensor.dtype._is_ref_dtype and not merged.dtype._is_ref_dtype:
        tensor = apply("Identity", tensor)
    if tensor.dtype.base_dtype != merged.dtype.base_dtype:
        raise TypeError(
            f"The loop variable {merged._op._inputs[0]._op._inputs[0].name} enters the loop with type "
            f"{merged.dtype.base_dtype.name} but has type {tensor.dtype.base_dtype.name} after 1 iteration. "
            "Its type cannot change; use tf.cast."
        )
    return tensor


def _invariants(originals: list[Any], shapes: Any) -> list[TensorShape | None]:
    """For every tensor of the loop variables, the shape asked for, or None."""
    invariants: list[TensorShape | None] = []
    asked = [None] * len(originals) if shapes is None else nest.flatten(shapes)
    for value, shape in zip(originals, asked, strict=True):
        if isinstance(shape, TypeSpec):
            invariants += _of_spec(value, shape)
            continue
        if shape is not None and not isinstance(shape, TensorShape):
            raise TypeError(f"shape_invariants must be TensorShapes, not {shape!r}")
        parts = nest.flatten(flow_of(value), expand_composites=True)
        if len(parts) == 1:
            invariants.append(shape)
        else:
            invariants += _composite(value, shape)
    return invariants


def _of_spec(value: TensorLike, spec: Any) -> list[TensorShape | None]:
    """The shapes of the parts of a value, from the spec of the whole."""
    value = value if isinstance(value, CompositeTensor) else to_tensor(value)
    if not spec.is_compatible_with(value):
        raise TypeError(f"The shape invariant {spec} is not compatible with the loop variable {value}.")
    parts = spec._to_components(value)
    specs = spec._component_specs
    if isinstance(parts, Tensor):
        return [specs.shape]
    shapes = {id(part): each.shape for part, each in zip(parts, specs, strict=True)}
    return [shapes[id(part)] for part in nest.flatten(value, expand_composites=True)]


def _by_rank(value: CompositeTensor) -> list[TensorShape | None]:
    """The shapes of the parts of a composite that may hold more or fewer values after a step."""
    parts = nest.flatten(value, expand_composites=True)
    if type(value).__name__ == "SparseTensor":
        rank = parts[0].shape.as_list()[1] if parts[0].shape.rank == 2 else None
        return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]
    if hasattr(value, "nested_row_splits"):
        values, rows, *inner = parts
        open_ended = TensorShape([None]).concatenate(values.shape[1:])
        return [open_ended, rows.shape, *(TensorShape([None]) for _ in inner)]
    return [None] * len(parts)


def _composite(value: Any, shape: TensorShape | None) -> list[TensorShape | None]:
    """The shapes of the parts of IndexedSlices, or of a sparse or ragged tensor, from the shape of the whole."""
    if shape is None:
        return _by_rank(value)
    if hasattr(value, "nested_row_splits"):
        spec = RaggedTensorSpec(shape, value.dtype, value.ragged_rank, value.row_splits.dtype)
        return _of_spec(value, spec)
    if type(value).__name__ == "SparseTensor":
        rank = shape.as_list()[0] if shape.rank == 1 else None  # the invariant is that of `dense_shape`
        return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]
    rest = TensorShape([None]).concatenate(shape[1:]) if shape.rank else shape
    parts: list[TensorShape | None] = [TensorShape([None]), rest, TensorShape([shape.rank])]
    return parts[: len(nest.flatten(value, expand_composites=True))]


def _checked(tensor: Tensor, shape: TensorShape | None) -> TensorShape:
    """The shape that a loop variable has in the loop."""
    if shape is None:
        return tensor.shape
    if not _within(tensor.shape, shape):
        raise ValueError(
            f"The shape invariant specified for {tensor.name} is not compatible with the initial shape of the loop "
            f"variable. It enters the loop with shape {tensor.shape}, but the specified shape invariant is {shape}."
        )
    return shape


def _within(shape: TensorShape, bound: TensorShape) -> bool:
    """Whether every shape that `shape` stands for is one of `bound`'s."""
    if bound.rank is None:
        return True
    if shape.rank != bound.rank:
        return False
    return all(b is None or d == b for d, b in zip(shape.as_list(), bound.as_list(), strict=True))


def _check_shape(merged: Tensor, value: Tensor, invariant: TensorShape | None) -> None:
    if _within(value.shape, merged.shape):
        return
    name = merged._op._inputs[0]._op._inputs[0].name
    if invariant is None:
        raise ValueError(
            f"Input tensor '{name}' enters the loop with shape {merged.shape}, but has shape {value.shape} after one "
            "iteration. To allow the shape to vary across iterations, use the `shape_invariants` argument of "
            "tf.while_loop to specify a less-specific shape."
        )
    raise ValueError(
        f"Input tensor '{name}' enters the loop with shape {merged.shape}, but has shape {value.shape} after one "
        f"iteration, which is not compatible with its shape invariant {invariant}. Give a less-specific shape "
        "invariant in the `shape_invariants` argument of tf.while_loop."
    )


def _packed(structure: Any, originals: list[Any], tensors: list[Tensor]) -> Any:
    """Tensors arranged like the loop variables, as TensorArrays and sparse tensors where those were."""
    plain = nest.pack_sequence_as(structure, [flow_of(v) for v in originals])
    values = nest.flatten(nest.pack_sequence_as(plain, tensors, expand_composites=True))
    pairs = zip(originals, values, strict=True)
    rebuilt = [with_flow(o, t) if isinstance(o, TensorArray) else t for o, t in pairs]
    return nest.pack_sequence_as(structure, rebuilt)
