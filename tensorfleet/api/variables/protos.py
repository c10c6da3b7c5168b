"""How variables are written into MetaGraphs."""

from __future__ import annotations

from tensorfleet.api.variables.variable import Variable
from tensorfleet.graph.meta_graph import register_proto_function
from tensorfleet.graph.scopes import GraphKeys

for _name in (
    GraphKeys.GLOBAL_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES,
    GraphKeys.MOVING_AVERAGE_VARIABLES,
    GraphKeys.LOCAL_VARIABLES,
    GraphKeys.MODEL_VARIABLES,
    GraphKeys.GLOBAL_STEP,
    GraphKeys.METRIC_VARIABLES,
):
    register_proto_function(_name, "VariableDef", Variable.to_proto, Variable.from_proto)
