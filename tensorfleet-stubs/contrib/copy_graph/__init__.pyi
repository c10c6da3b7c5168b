# Written by tools/make_stubs.py.
from tensorfleet.contrib.copy_graph import python as python
from tensorfleet_legacy.contrib.copy_graph.copy_elements import copy_op_to_graph as copy_op_to_graph
from tensorfleet_legacy.contrib.copy_graph.copy_elements import copy_variable_to_graph as copy_variable_to_graph
from tensorfleet_legacy.contrib.copy_graph.copy_elements import get_copied_op as get_copied_op
