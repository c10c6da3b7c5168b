# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.learn.model_fn import InputFnOps as InputFnOps
from tensorfleet_legacy.contrib.learn.model_fn import build_parsing_serving_input_fn as build_parsing_serving_input_fn
