"""`tf.cond`, `tf.case` and the functions that they are made of."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import CompositeTensor, IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, get_default_graph, name_scope
from tensorfleet.ops.array.basic import no_op, with_dependencies
from tensorfleet.ops.control.context import CondContext, switch
from tensorfleet.ops.state.tensor_array import TensorArray, with_flow

#: A function without arguments that builds a branch: it returns tensors in any structure.
Branch: TypeAlias = Callable[[], Any]
#: Predicates and their functions, as `tf.case` takes them.
Pairs: TypeAlias = Sequence[tuple[Any, Branch]] | dict[Any, Branch]


@export("python.ops.control_flow_ops.switch")
def _switch(
    data: TensorLike, pred: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> tuple[Any, ...]:
    """`data` as it is in two branches: (when `pred` is false, when it is true)."""
    with name_scope(name, "Switch", [data, pred]) as scope:
        if isinstance(data, CompositeTensor):
            parts = [switch(t, pred) for t in nest.flatten(data, expand_composites=True)]
            return tuple(
                nest.pack_sequence_as(data, [p[i] for p in parts], expand_composites=True) for i in (0, 1)
            )
        return tuple(switch(to_tensor(data, dtype, name="data"), pred, name=scope))


class Merged(NamedTuple):
    """The result of a merge: the value, and the position of its input."""

    output: Any
    value_index: Tensor


@export("python.ops.control_flow_ops.merge")
def merge(inputs: Sequence[Any], name: str | None = None) -> Merged:
    """Whichever of the tensors there is, and its position."""
    if any(t is None for t in inputs):
        raise ValueError(f"At least one of the merge inputs is None: {inputs}")
    if any(isinstance(t, CompositeTensor) for t in inputs):
        with name_scope(name, "Merge"):
            parts = [nest.flatten(t, expand_composites=True) for t in inputs]
            merged = [apply_list("Merge", list(same)) for same in zip(*parts, strict=True)]
            whole = nest.pack_sequence_as(inputs[0], [m[0] for m in merged], expand_composites=True)
            return Merged(whole, merged[0][1])
    value, position = apply_list("Merge", list(inputs), name=name)
    return Merged(value, position)


@export("python.ops.control_flow_ops.ref_select")
def ref_select(index: TensorLike, inputs: Iterable[TensorLike], name: str | None = None) -> Tensor:
    """The variable of that number, for reading."""
    return apply("RefSelect", to_tensor(index, dtypes.int32), list(inputs), name=name)


@export("cond")
def cond(
    pred: TensorLike,
    true_fn: Branch | None = None,
    false_fn: Branch | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Branch | None = None,
    fn2: Branch | None = None,
) -> Any:
    """The result of `true_fn` if `pred` holds when it is run, else that of `false_fn`.

    Only the operations made inside the function taken run. Both must return the same structure of tensors.
    With `strict`, a list of one tensor stays a list.
    """
    true_fn, false_fn = _function(true_fn, fn1, "true_fn", "fn1"), _function(false_fn, fn2, "false_fn", "fn2")
    with name_scope(name, "cond", [pred]):
        if isinstance(pred, bool):
            raise TypeError("pred must not be a Python bool")
        pred = to_tensor(pred)
        graph = get_default_graph()
        p_false, p_true = switch(pred, pred)
        pivots = [apply("Identity", p_true, name="switch_t"), apply("Identity", p_false, name="switch_f")]
        pred_id = apply("Identity", pred, name="pred_id")
        for t in (p_true, *pivots, pred_id):
            graph.prevent_fetching(t._op)
        results = []
        for branch, pivot, fn in ((1, pivots[0], true_fn), (0, pivots[1], false_fn)):
            context = CondContext(pred_id, pivot, branch)
            with context:
                results.append(_branch(context, fn, strict))
            if context.outer_context is None:
                graph.add_to_collection(GraphKeys.COND_CONTEXT, context)
        merged = _merged(results[0], results[1])
        return merged if strict else _alone(merged)


def _function(fn: Branch | None, old: Branch | None, name: str, old_name: str) -> Branch:
    if old is not None:
        if fn is not None:
            raise TypeError(f"cond(): '{name}' and '{old_name}' may not be set simultaneously.")
        fn = old
    elif fn is None:
        raise TypeError(f"cond(): '{name}' argument required")
    if not callable(fn):
        raise TypeError(f"{name} must be callable.")
    return fn


def _branch(context: CondContext, fn: Branch, strict: bool) -> tuple[Any, list[Tensor]]:
    """The result of a branch, and its tensors, all of them inside the branch."""
    result = with_summaries(fn)
    result = result if strict else _alone(result)
    if result is None:
        return None, [context.AddValue(with_dependencies([no_op()], context.pivot))]
    flows = nest.map_structure(flow_of, result)
    flat = [_inside(context, v) for v in nest.flatten(flows, expand_composites=True)]
    return result, flat


def _alone(result: Any) -> Any:
    """The one element of a list or tuple: one branch may return it without the other's list."""
    return result[0] if isinstance(result, (list, tuple)) and len(result) == 1 else result


def with_summaries(fn: Branch) -> Any:
    """The result of a branch or a body, which waits for the summaries that are written in it.

    It removes these summaries from the collection: outside of the context nobody could run them.
    """
    graph, key = get_default_graph(), GraphKeys._SUMMARY_COLLECTION
    before = len(graph.get_collection(key))
    result = fn()
    summaries = graph.get_collection(key)[before:]
    if not summaries:
        return result
    del graph.get_collection_ref(key)[before:]
    with control_dependencies(summaries):
        return no_op() if result is None else nest.map_structure(_after, result, expand_composites=True)


def _after(value: TensorLike) -> Any:
    if isinstance(value, Operation):
        return no_op()
    if isinstance(value, TensorArray):
        return with_flow(value, apply("Identity", value.flow))
    return apply("Identity", value)


def flow_of(value: Any) -> Any:
    """The flow of a TensorArray; any other value as it is."""
    return value.flow if isinstance(value, TensorArray) else value


def _inside(context: CondContext, value: TensorLike) -> Tensor:
    if isinstance(value, Operation):
        pivot: Tensor = with_dependencies([value], context.pivot)
        return pivot
    tensor = to_tensor(value)
    if tensor.dtype._is_ref_dtype:
        tensor = apply("Identity", tensor)
    return context.AddValue(tensor)


def _merged(true: tuple[Any, list[Tensor]], false: tuple[Any, list[Tensor]]) -> Any:
    (first, when_true), (other, when_false) = true, false
    try:
        _same_structure(first, other)
    except TypeError as e:
        raise TypeError(f"Incompatible return types of true_fn and false_fn: {e}") from None
    except ValueError as e:
        raise ValueError(f"Incompatible return values of true_fn and false_fn: {e}") from None
    if not when_true:
        raise ValueError("true_fn and false_fn must return at least one result.")
    merged: list[Any] = []
    if _has_slices(first):
        when_false, when_true = _same_indices(when_false, when_true)
    for f, t in zip(when_false, when_true, strict=True):
        if f.dtype.base_dtype != t.dtype.base_dtype:
            raise ValueError(
                f"Outputs of true_fn and false_fn must have the same type: {t.dtype.name}, {f.dtype.name}"
            )
        merged.append(merge([f, t])[0])
    if first is None:
        return None
    if isinstance(first, Operation) or not (
        nest.is_nested(first) or isinstance(first, (CompositeTensor, TensorArray))
    ):
        return merged[0]
    packed = nest.pack_sequence_as(nest.map_structure(flow_of, first), merged, expand_composites=True)
    if not any(isinstance(v, TensorArray) for v in nest.flatten(first)):
        return packed
    return nest.map_structure(
        lambda old, new: with_flow(old, new) if isinstance(old, TensorArray) else new, first, packed
    )


def _has_slices(value: Any) -> bool:
    return any(isinstance(v, IndexedSlices) for v in nest.flatten(value))


def _same_indices(one: list[Tensor], other: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Two lists of tensors; where one has 32-bit integers and the other 64, both have 64."""
    pairs = []
    for a, b in zip(one, other, strict=True):
        if {a.dtype.base_dtype, b.dtype.base_dtype} == {dtypes.int32, dtypes.int64}:
            a, b = (apply("Cast", t, DstT=dtypes.int64) for t in (a, b))
        pairs.append((a, b))
    return [a for a, _ in pairs], [b for _, b in pairs]


def _same_structure(a: Any, b: Any) -> None:
    if a is None or b is None:
        which = "true_fn" if a is None else "false_fn"
        raise ValueError(f"{which} must have a return value.")
    nest.assert_same_structure(a, b)


@export("python.framework.smart_cond.smart_cond", "contrib.framework.smart_cond")
def smart_cond(
    pred: TensorLike,
    true_fn: Branch | None = None,
    false_fn: Branch | None = None,
    name: str | None = None,
) -> Any:
    """`tf.cond`, or just the call of one of the functions when the condition is known already."""
    if not callable(true_fn):
        raise TypeError("`true_fn` must be callable.")
    if not callable(false_fn):
        raise TypeError("`false_fn` must be callable.")
    value = smart_constant_value(pred)
    if value is None:
        return cond(pred, true_fn, false_fn, name=name)
    return true_fn() if value else false_fn()


@export("python.framework.smart_cond.smart_constant_value", "contrib.framework.smart_constant_value")
def smart_constant_value(pred: TensorLike) -> bool | None:
    """A condition as a Python bool when it is known without running anything, else None."""
    if isinstance(pred, Tensor):
        value = constant_value(pred)
        return None if value is None else bool(value)
    if pred in {0, 1}:
        return bool(pred)
    if isinstance(pred, bool):
        return pred
    raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: {type(pred)}")


@export("python.framework.smart_cond.smart_case", "contrib.framework.smart_case")
def smart_case(
    pred_fn_pairs: Pairs,
    default: Branch | None = None,
    exclusive: bool = False,
    name: str = "smart_case",
) -> Any:
    """`tf.case`, without the functions whose predicates are known to be false, or to come after a true one."""
    pairs = pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs
    open_pairs = []
    for pred, fn in pairs:
        value = smart_constant_value(pred)
        if value is None:
            open_pairs.append((pred, fn))
        elif value:
            default = fn
            break
    if not open_pairs and default is not None:
        return default()
    return case(open_pairs, default, exclusive, name=name)


@export("case")
def case(
    pred_fn_pairs: Pairs,
    default: Branch | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the function of the first true predicate, else that of `default`.

    With `exclusive`, more than one true predicate is an error.
    """
    pairs = case_pairs(pred_fn_pairs)
    if default is not None and not callable(default):
        raise TypeError("default must be callable.")
    with name_scope(name, "case", [p for p, _ in pairs]):
        rest = pairs
        if default is None:
            default, rest = with_forced_default(pairs)
        chosen = default
        for pred, fn in reversed(rest):
            chosen = functools.partial(cond, pred, fn, chosen, strict=strict, name="cond")
        if exclusive:
            with control_dependencies([exclusive_check(pairs)]):
                return chosen()
        return chosen()


def case_pairs(given: Any, allow_bools: bool = False) -> list[tuple[Any, Branch]]:
    """The predicates of a `tf.case` with their functions, checked."""
    if isinstance(given, OrderedDict):
        pairs = list(given.items())
    elif isinstance(given, dict):
        pairs = sorted(given.items(), key=lambda item: item[0].name)
    else:
        if not isinstance(given, (list, tuple)):
            raise TypeError("pred_fn_pairs must be a list, tuple, or dict")
        pairs = list(given)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Each entry in pred_fn_pairs must be a 2-tuple")
        pred, fn = pair
        if not isinstance(pred, (Tensor, bool) if allow_bools else Tensor):
            raise TypeError(f"pred must be Tensor, got {pred}")
        if isinstance(pred, Tensor) and pred.dtype.base_dtype.name != "bool":
            raise TypeError(f"pred must be of type bool: {pred.name}")
        if not callable(fn):
            raise TypeError(f"fn for pred {_called(pred)} must be callable.")
    if not pairs:
        raise ValueError("pred_fn_pairs must not be empty")
    return pairs


def _called(pred: Any) -> str:
    return pred.name if isinstance(pred, Tensor) else str(pred)


def with_forced_default(pairs: list[tuple[Any, Branch]]) -> tuple[Branch, list[tuple[Any, Branch]]]:
    """Makes the last function the default, after a check that one predicate holds; and the other pairs."""
    from tensorfleet.ops.array.checks import Assert

    preds = [p for p, _ in pairs]
    rest, last_fn = pairs[:-1], pairs[-1][1]

    def checked() -> Any:
        any_true = apply("Any", apply("Pack", preds), 0)
        message = "Input error: None of conditions evaluated as True:"
        with control_dependencies([Assert(any_true, [message, apply("Pack", preds)], summarize=len(preds))]):
            return last_fn()

    return checked, rest


def exclusive_check(pairs: list[tuple[Any, Branch]]) -> Operation:
    """Fails where more than one predicate holds."""
    from tensorfleet.ops.array.checks import Assert

    preds = [p for p, _ in pairs]
    stacked = apply("Pack", preds)
    count = apply("Sum", apply("Cast", stacked, DstT="int32"), [0])
    names = ", ".join(map(_called, preds))
    message = f"Input error: exclusive=True: more than 1 conditions ({names}) evaluated as True:"
    with name_scope("are_at_most_one_true"):
        return Assert(apply("Less", count, 2), [message, stacked], summarize=len(preds))
