# Written by tools/make_stubs.py.
from tensorfleet_legacy.estimator.numpy_io import numpy_input_fn as numpy_input_fn
from tensorfleet_legacy.estimator.numpy_io import pandas_input_fn as pandas_input_fn
