"""Queries to TensorFlow's C library while a graph is built: whether a tensor's value is known already."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import export
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.ops.control.cond import case_pairs, exclusive_check, with_forced_default


@export("python.pywrap_tensorflow.TF_TryEvaluateConstant_wrapper")
def try_evaluate_constant(graph: Graph, output: Tensor) -> Any:
    """The value of a tensor that does not depend on what is fed or stored; None where it does, or may."""
    return constant_value(output)


@export("python.ops.control_flow_ops._case_helper")
def case_helper(
    cond_fn: Callable,
    pred_fn_pairs: Any,
    default: Callable | None,
    exclusive: bool,
    name: str,
    allow_python_preds: bool = False,
    **cond_kwargs: Any,
) -> Any:
    """`tf.case` by another function than `tf.cond`, which may know predicates that are no tensors."""
    pairs = case_pairs(pred_fn_pairs, allow_python_preds)
    with name_scope(name, "case", [p for p, _ in pairs if isinstance(p, Tensor)]):
        chosen, rest = (default, pairs) if default is not None else with_forced_default(pairs)
        for pred, fn in reversed(rest):
            chosen = functools.partial(cond_fn, pred, true_fn=fn, false_fn=chosen, **cond_kwargs)
        with control_dependencies([exclusive_check(pairs)] if exclusive else []):
            return chosen()
