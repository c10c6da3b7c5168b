"""Choosing operations and tensors of a graph: by name, by a test, by where they lie."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet_legacy.contrib.graph_editor import util

_REGEXES = (str, re.Pattern)


def can_be_regex(obj: Any) -> bool:
    """Whether it is text or a compiled expression."""
    return isinstance(obj, _REGEXES)


def make_regex(obj: Any) -> re.Pattern:
    """The compiled expression."""
    if not can_be_regex(obj):
        raise ValueError(f"Expected a string or a regex, got: {type(obj)}")
    return re.compile(obj) if isinstance(obj, str) else obj


def _get_input_ts(ops: Any) -> list[Tensor]:
    """The inputs of some operations, each once."""
    return list(dict.fromkeys(t for op in util.make_list_of_op(ops) for t in op.inputs))


def _get_output_ts(ops: Any) -> list[Tensor]:
    """The outputs of some operations."""
    return [t for op in util.make_list_of_op(ops) for t in op.outputs]


def _test(positive_filter: Any) -> Callable:
    return (lambda _: True) if positive_filter is True else positive_filter


def filter_ts(ops: Any, positive_filter: Any) -> list[Tensor]:
    """The inputs and outputs of some operations that pass a test; True passes all."""
    ops = util.make_list_of_op(ops)
    return [
        t
        for t in util.concatenate_unique(_get_input_ts(ops), _get_output_ts(ops))
        if _test(positive_filter)(t)
    ]


def filter_ts_from_regex(ops: Any, regex: Any) -> list[Tensor]:
    """The inputs and outputs of some operations with a name that fits."""
    return filter_ts(ops, lambda t: make_regex(regex).search(t.name))


def filter_ops(ops: Any, positive_filter: Any) -> list[Operation]:
    """The operations that pass a test; True passes all."""
    return [op for op in util.make_list_of_op(ops) if _test(positive_filter)(op)]


def filter_ops_from_regex(ops: Any, regex: Any) -> list[Operation]:
    """The operations with a name that fits."""
    return filter_ops(ops, lambda op: make_regex(regex).search(op.name))


def get_name_scope_ops(ops: Any, scope: str) -> list[Operation]:
    """The operations in a name scope."""
    start = util.scope_finalize(scope)
    return [op for op in util.make_list_of_op(ops) if op.name.startswith(start) or op.name == scope]


def check_cios(control_inputs: Any = False, control_outputs: Any = None, control_ios: Any = None) -> tuple:
    """Whether control inputs count, and the `ControlOutputs` if control outputs do; `control_ios` means both."""
    if control_ios is not None:
        if not isinstance(control_ios, util.ControlOutputs):
            raise TypeError(f"Expected a util.ControlOutputs, got: {type(control_ios)}")
        if control_outputs is not None:
            raise ValueError("control_outputs should be None when using control_ios.")
        return True, control_ios
    if control_outputs is not None and not isinstance(control_outputs, util.ControlOutputs):
        raise TypeError(f"Expected a util.ControlOutputs, got: {type(control_outputs)}")
    return control_inputs, control_outputs


def get_ops_ios(
    ops: Any, control_inputs: Any = False, control_outputs: Any = None, control_ios: Any = None
) -> list[Operation]:
    """The operations that some operations take from, and those that take from them."""
    waits, waiting = check_cios(control_inputs, control_outputs, control_ios)
    ordered: dict[Operation, None] = {}
    for op in util.make_list_of_op(ops):
        ordered.update(dict.fromkeys(t.op for t in op.inputs))
        ordered.update(dict.fromkeys(op.control_inputs if waits else ()))
        ordered.update(dict.fromkeys(c for t in op.outputs for c in t.consumers()))
        ordered.update(dict.fromkeys(waiting.get(op) if waiting is not None else ()))
    return list(ordered)


def compute_boundary_ts(ops: Any) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The tensors that come from outside, those that are used outside or by nobody, and those that stay inside."""
    ops = util.make_list_of_op(ops)
    inside, result = set(ops), _get_output_ts(ops)
    own = set(result)
    taken = _get_input_ts(ops)
    coming = [t for t in taken if t not in own]
    staying = [t for t in taken if t in own and inside.issuperset(t.consumers())]
    stay = set(staying)
    return coming, [t for t in result if t not in stay], staying


def get_within_boundary_ops(
    ops: Any,
    seed_ops: Any,
    boundary_ops: Any = (),
    inclusive: bool = True,
    control_inputs: Any = False,
    control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Operation]:
    """The operations reached from some in both directions, up to a boundary (which `inclusive` includes)."""
    waits, waiting = check_cios(control_inputs, control_outputs, control_ios)
    within = set(util.make_list_of_op(ops))
    seeds = util.make_list_of_op(seed_ops, allow_graph=False)
    boundary = set(util.make_list_of_op(boundary_ops))
    result = dict.fromkeys(seeds)
    if boundary - within:
        raise ValueError("Some boundary ops are not in `ops`. Add them there.")
    if boundary & set(seeds):
        raise ValueError("Boundary is intersecting with the seeds. Leave the seeds out of it.")
    edge = seeds
    while edge:
        near = [op for op in get_ops_ios(edge, waits, waiting) if op in within and op not in result]
        result.update(dict.fromkeys(op for op in near if inclusive or op not in boundary))
        edge = [op for op in near if op not in boundary]
    return list(result)


def _walk(seeds: list[Operation], inclusive: bool, allowed: Callable, following: Callable) -> list[Operation]:
    """All operations reached from some, which come first unless they are left out."""
    result = dict.fromkeys(op for op in seeds if allowed(op))
    edge = list(result)
    while edge:
        edge = list(dict.fromkeys(o for op in edge for o in following(op) if o not in result and allowed(o)))
        result.update(dict.fromkeys(edge))
    return [op for op in result if inclusive or op not in set(seeds)]


def _allowed(within_ops: Any, within_ops_fn: Callable | None) -> Callable:
    within = None if within_ops is None else set(util.make_list_of_op(within_ops, allow_graph=False))
    return lambda op: (within is None or op in within) and (within_ops_fn is None or within_ops_fn(op))


def _seeds(given: Any, of_tensors: Callable) -> list[Operation]:
    given = list(given) if util.is_iterable(given) else [given]
    if given and isinstance(given[0], Tensor):
        return list(dict.fromkeys(of_tensors(util.make_list_of_t(given, allow_graph=False))))
    return util.make_list_of_op(given, allow_graph=False)


def get_forward_walk_ops(
    seed_ops: Any,
    inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Callable | None = None,
    stop_at_ts: Iterable[Tensor] = (),
    control_outputs: Any = None,
) -> list[Operation]:
    """All operations that depend on some operations, or on some tensors."""
    _, waiting = check_cios(False, control_outputs)
    stops = set(util.make_list_of_t(stop_at_ts))

    def following(op: Operation) -> list[Operation]:
        taking = [c for t in op.outputs if t not in stops for c in t.consumers()]
        return taking + (waiting.get(op) if waiting is not None else [])

    seeds = _seeds(seed_ops, util.get_consuming_ops)
    return _walk(seeds, inclusive, _allowed(within_ops, within_ops_fn), following)


def get_backward_walk_ops(
    seed_ops: Any,
    inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Callable | None = None,
    stop_at_ts: Iterable[Tensor] = (),
    control_inputs: Any = False,
) -> list[Operation]:
    """All operations that some operations, or some tensors, depend on."""
    waits, _ = check_cios(control_inputs)
    stops = set(util.make_list_of_t(stop_at_ts))

    def following(op: Operation) -> list[Operation]:
        given = [t.op for t in op.inputs if t not in stops]
        return given + (op.control_inputs if waits else [])

    seeds = _seeds(seed_ops, util.get_generating_ops)
    return _walk(seeds, inclusive, _allowed(within_ops, within_ops_fn), following)


def _both_walks(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool,
    backward_inclusive: bool,
    within_ops: Any,
    within_ops_fn: Callable | None,
    *controls: Any,
) -> tuple[list, list]:
    """The operations that depend on some operations and that others depend on."""
    waits, waiting = check_cios(*controls)
    within = (within_ops, within_ops_fn)
    forward = get_forward_walk_ops(forward_seed_ops, forward_inclusive, *within, control_outputs=waiting)
    return forward, get_backward_walk_ops(
        backward_seed_ops, backward_inclusive, *within, control_inputs=waits
    )


def get_walks_intersection_ops(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool = True,
    backward_inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Callable | None = None,
    control_inputs: Any = False,
    control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Operation]:
    """The operations on a path from some operations to others."""
    forward, backward = _both_walks(*locals().values())
    both = set(backward)
    return [op for op in forward if op in both]


def get_walks_union_ops(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool = True,
    backward_inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Callable | None = None,
    control_inputs: Any = False,
    control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Operation]:
    """The operations that depend on some operations and that others depend on."""
    forward, backward = _both_walks(*locals().values())
    return util.concatenate_unique(forward, backward)


def _chosen(args: Any, options: dict, kind: str, listed: Callable, named: Callable, other: type) -> list:
    """The elements that regexes match or that are given, each once; `kind` is a regex's prefix: (?#ops), (?#ts)."""
    options = dict(options)
    graph, positive = options.pop("graph", None), options.pop("positive_filter", None)
    restrict = options.pop(f"restrict_{kind}_regex", False)
    if options:
        raise ValueError(f"Unexpected keywords arguments: {list(options)}")
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"Expected a tf.Graph, got: {type(graph)}")
    foreign = "(?#ts)" if kind == "ops" else "(?#ops)"
    chosen: dict = {}
    for arg in args:
        if can_be_regex(arg):
            if graph is None:
                raise ValueError("Use the keyword argument 'graph' to use regex.")
            regex = make_regex(arg)
            own = regex.pattern.startswith(f"(?#{kind})")
            if regex.pattern.startswith(foreign) or (restrict and not own):
                continue
            chosen.update(dict.fromkeys(named(graph, regex)))
        else:
            given = listed(arg, **{"ignore_ts" if kind == "ops" else "ignore_ops": True})
            chosen.update(dict.fromkeys(given))
    return [x for x in chosen if positive is None or positive(x)]


def select_ops(*args: Any, **kwargs: Any) -> list[Operation]:
    """The operations that are given, or have a name that a regex is found in.

    Keywords: `graph` for regexes, `positive_filter`, and `restrict_ops_regex` to heed only those that begin with "(?#ops)".
    """
    return _chosen(args, kwargs, "ops", util.make_list_of_op, filter_ops_from_regex, Tensor)


def select_ts(*args: Any, **kwargs: Any) -> list[Tensor]:
    """The tensors that are given, or have a name that a regex is found in.

    Keywords: `graph` for regexes, `positive_filter`, and `restrict_ts_regex` to heed only those that begin with "(?#ts)".
    """
    return _chosen(args, kwargs, "ts", util.make_list_of_t, filter_ts_from_regex, Operation)


def select_ops_and_ts(*args: Any, **kwargs: Any) -> tuple[list[Operation], list[Tensor]]:
    """Operations and tensors; a regex is for tensors if it begins with "(?#ts)"."""
    graphs = [a for a in args if isinstance(a, Graph)]
    tensors = [a for a in args if not isinstance(a, Graph)] if graphs else args
    return select_ops(*args, **kwargs), select_ts(*tensors, restrict_ts_regex=True, **kwargs)
