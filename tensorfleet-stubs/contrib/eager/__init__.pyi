# Written by tools/make_stubs.py.
from tensorfleet.api.functions.def_function import defun as defun
from tensorfleet.api.functions.py_function import py_function as _py_func
from tensorfleet.contrib.eager import python as python
from tensorfleet.ops.array.queries import executing_eagerly as _in_eager_mode
from tensorfleet.ops.array.queries import executing_eagerly as executing_eagerly
from tensorfleet_legacy.testing.test_util_modes import run_in_graph_and_eager_modes as _run_test_in_graph_and_eager_modes
in_eager_mode = _in_eager_mode
py_func = _py_func
run_test_in_graph_and_eager_modes = _run_test_in_graph_and_eager_modes
