# Written by tools/make_stubs.py.
from tensorfleet.contrib.learn.utils import input_fn_utils as input_fn_utils
from tensorfleet.contrib.learn.utils import saved_model_export_utils as saved_model_export_utils
from tensorfleet_legacy.contrib.learn.experiment import make_export_strategy as make_export_strategy
