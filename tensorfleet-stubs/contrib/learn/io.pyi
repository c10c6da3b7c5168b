# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.learn.data_feeder import extract_pandas_data as extract_pandas_data
from tensorfleet_legacy.contrib.learn.data_feeder import extract_pandas_labels as extract_pandas_labels
from tensorfleet_legacy.contrib.learn.data_feeder import extract_pandas_matrix as extract_pandas_matrix
from tensorfleet_legacy.contrib.learn.generator_io import generator_input_fn as generator_input_fn
from tensorfleet_legacy.contrib.learn.text import numpy_input_fn as numpy_input_fn
from tensorfleet_legacy.contrib.learn.text import pandas_input_fn as pandas_input_fn
from tensorfleet_legacy.contrib.learn.text import read_batch_features as read_batch_features
