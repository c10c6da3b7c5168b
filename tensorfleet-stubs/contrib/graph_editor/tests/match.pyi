# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.graph_editor.match import OpMatcher as OpMatcher
from tensorfleet_legacy.contrib.graph_editor.match import op_type as op_type
