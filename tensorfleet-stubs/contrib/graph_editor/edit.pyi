# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.graph_editor.edit import bypass as bypass
from tensorfleet_legacy.contrib.graph_editor.edit import connect as connect
from tensorfleet_legacy.contrib.graph_editor.edit import detach as detach
from tensorfleet_legacy.contrib.graph_editor.edit import detach_control_inputs as detach_control_inputs
from tensorfleet_legacy.contrib.graph_editor.edit import detach_control_outputs as detach_control_outputs
from tensorfleet_legacy.contrib.graph_editor.edit import detach_inputs as detach_inputs
from tensorfleet_legacy.contrib.graph_editor.edit import detach_outputs as detach_outputs
