# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.graph_editor.subgraph import SubGraphView as SubGraphView
from tensorfleet_legacy.contrib.graph_editor.subgraph import make_view as make_view
from tensorfleet_legacy.contrib.graph_editor.subgraph import make_view_from_scope as make_view_from_scope
