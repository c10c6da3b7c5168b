# Written by tools/make_stubs.py.
from tensorfleet.contrib.graph_editor.tests import match as match
