"""Other inputs for operations that are made already."""

from __future__ import annotations

from typing import Any

from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet_legacy.contrib.graph_editor import subgraph, util


def _check_alike(ts0: list[Tensor], ts1: list[Tensor]) -> None:
    if len(ts0) != len(ts1):
        raise ValueError(f"ts0 and ts1 have different sizes: {len(ts0)} != {len(ts1)}")
    for a, b in zip(ts0, ts1, strict=True):
        if a.dtype.base_dtype != b.dtype.base_dtype:
            raise ValueError(f"Dtypes {a.dtype} and {b.dtype} are not compatible.")
        if not a.shape.is_compatible_with(b.shape):
            raise ValueError(f"Shapes {a.shape} and {b.shape} are not compatible.")


def _move(uses: list[tuple[Operation, int]], tensor: Tensor) -> int:
    for op, place in uses:
        op._update_input(place, tensor)
    return len(uses)


def _between(ts0: Any, ts1: Any, swap: bool, can_modify: Any, cannot_modify: Any) -> int:
    """Gives the uses of each tensor of `ts1` the one of `ts0`, and the other way round in a swap; how many there were."""
    first, second = util.make_list_of_t(ts0), util.make_list_of_t(ts1)
    _check_alike(first, second)
    util.check_graphs(*first, *second)
    can = None if can_modify is None else set(util.make_list_of_op(can_modify))
    cannot = set() if cannot_modify is None else set(util.make_list_of_op(cannot_modify))

    def uses(tensor: Tensor) -> list[tuple[Operation, int]]:
        ops = dict.fromkeys(
            op for op in tensor.consumers() if (can is None or op in can) and op not in cannot
        )
        return [(op, i) for op in ops for i, t in enumerate(op.inputs) if t is tensor]

    before = [(a, b, uses(a), uses(b)) for a, b in zip(first, second, strict=True) if a is not b]
    count = 0
    for a, b, of_a, of_b in before:
        count += _move(of_b, a) + (_move(of_a, b) if swap else 0)
    return count


def swap_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Gives what takes a tensor of `ts0` the one of `ts1`, and the other way round; how many inputs that changed."""
    return _between(ts0, ts1, True, can_modify, cannot_modify)


def reroute_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Gives what takes a tensor of `ts1` the one of `ts0`; how many inputs that changed."""
    return _between(ts0, ts1, False, can_modify, cannot_modify)


_View = subgraph.SubGraphView


def _inputs(sgv0: Any, sgv1: Any, swap: bool) -> tuple[_View, _View]:
    first, second = subgraph.make_view(sgv0), subgraph.make_view(sgv1)
    util.check_graphs(*first.ops, *second.ops)
    before = list(first.inputs), list(second.inputs)
    _between(first.inputs, second.inputs, swap, [*first.ops, *second.ops], None)
    return (first._with(_input_ts=before[1]) if swap else first), second._with(_input_ts=before[0])


def _outputs(sgv0: Any, sgv1: Any, swap: bool) -> tuple[_View, _View]:
    first, second = subgraph.make_view(sgv0), subgraph.make_view(sgv1)
    util.check_graphs(*first.ops, *second.ops)
    _between(first.outputs, second.outputs, swap, None, [*first.ops, *second.ops])
    return first, second


def swap_inputs(sgv0: Any, sgv1: Any) -> tuple[_View, _View]:
    """Each takes what the other took; both as they are then."""
    return _inputs(sgv0, sgv1, True)


def reroute_inputs(sgv0: Any, sgv1: Any) -> tuple[_View, _View]:
    """The second takes what the first takes; both as they are then."""
    return _inputs(sgv0, sgv1, False)


def swap_outputs(sgv0: Any, sgv1: Any) -> tuple[_View, _View]:
    """Gives the consumers of one view's outputs the other view's outputs, and vice versa."""
    return _outputs(sgv0, sgv1, True)


def reroute_outputs(sgv0: Any, sgv1: Any) -> tuple[_View, _View]:
    """Gives the consumers of the second view's outputs the first view's outputs."""
    return _outputs(sgv0, sgv1, False)


def swap_ios(sgv0: Any, sgv1: Any) -> tuple[_View, _View]:
    """Both inputs and outputs."""
    return _inputs(*_outputs(sgv0, sgv1, True), True)


def reroute_ios(sgv0: Any, sgv1: Any) -> tuple[_View, _View]:
    """Both inputs and outputs."""
    return _inputs(*_outputs(sgv0, sgv1, False), False)


def remove_control_inputs(op: Operation, cops: Any) -> None:
    """`op` no longer waits for `cops`."""
    if not isinstance(op, Operation):
        raise TypeError(f"Expected a tf.Operation, got: {type(op)}")
    given = util.make_list_of_op(cops, allow_graph=False)
    for cop in given:
        if cop not in op.control_inputs:
            raise ValueError(f"{op.name} is not a control_input of {cop.name}")
    rest = [cop for cop in op.control_inputs if cop not in given]
    op._remove_all_control_inputs()
    op._add_control_inputs(rest)


def add_control_inputs(op: Operation, cops: Any) -> None:
    """`op` waits for `cops`, too."""
    if not isinstance(op, Operation):
        raise TypeError(f"Expected a tf.Operation, got: {type(op)}")
    given = util.make_list_of_op(cops, allow_graph=False)
    for cop in given:
        if cop in op.control_inputs:
            raise ValueError(f"{cop.name} is already a control_input of {op.name}")
    op._add_control_inputs(given)
