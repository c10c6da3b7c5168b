# Written by tools/make_stubs.py.
from tensorfleet.api.saved_model.builder import main_op as main_op
from tensorfleet.api.saved_model.builder import main_op_with_restore as main_op_with_restore
