# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.tfprof.model_analyzer import print_model_analysis as print_model_analysis
import typing
FLOAT_OPS_OPTIONS: typing.Any
TRAINABLE_VARS_PARAMS_STAT_OPTIONS: typing.Any
