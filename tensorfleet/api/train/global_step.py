"""The global step: the one variable of a graph that counts training steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.api.variables.scope import get_variable
from tensorfleet.api.variables.variable import Variable, VariableAggregation
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, get_default_graph

if TYPE_CHECKING:
    from tensorfleet.api.train.types import AnySession, GlobalStep


@export("train.global_step")
def global_step(sess: AnySession, global_step_tensor: GlobalStep) -> int:
    """The current value of the global step, as a Python int."""
    return int(sess.run(global_step_tensor))


@export("train.get_global_step", "contrib.framework.get_global_step")
def get_global_step(graph: Graph | None = None) -> Any:
    """The graph's global step, or None when it has none."""
    graph = graph or get_default_graph()
    steps = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(steps) > 1:
        logging.error("Multiple tensors in global_step collection.")
        return None
    if steps:
        step = steps[0]
    else:
        try:
            step = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    assert_global_step(step)
    return step


@export("train.create_global_step", "contrib.framework.create_global_step")
def create_global_step(graph: Graph | None = None) -> Variable:
    """Makes the graph's global step; ValueError when there is one already."""
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        step: Variable = get_variable(
            GraphKeys.GLOBAL_STEP,
            shape=[],
            dtype=dtypes.int64,
            initializer=Zeros(),
            trainable=False,
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )
    return step


@export(
    "train.get_or_create_global_step",
    "contrib.framework.get_or_create_global_step",
    "contrib.slim.get_or_create_global_step",
)
def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The graph's global step, made at the first call."""
    graph = graph or get_default_graph()
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


@export("train.assert_global_step")
def assert_global_step(global_step_tensor: GlobalStep) -> None:
    """TypeError unless this is a scalar integer variable or tensor."""
    if not isinstance(global_step_tensor, (Variable, Tensor)):
        raise TypeError(f'Existing "global_step" must be a Variable or Tensor: {global_step_tensor}.')
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError(f'Existing "global_step" does not have integer type: {global_step_tensor.dtype}')
    shape = global_step_tensor.get_shape()
    if shape.rank != 0 and shape.is_fully_defined():
        raise TypeError(f'Existing "global_step" is not scalar: {shape}')
