# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.copy_graph.copy_elements import constant_value as constant_value
from tensorfleet_legacy.contrib.copy_graph.copy_elements import ops_used_by_graph_def as ops_used_by_graph_def
from tensorfleet_legacy.contrib.copy_graph.copy_elements import stripped_op_list_for_graph as stripped_op_list_for_graph
import typing
def __getattr__(name: str) -> typing.Any: ...
