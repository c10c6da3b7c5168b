# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.learn.data_feeder import extract_pandas_data as extract_pandas_data
from tensorfleet_legacy.contrib.learn.data_feeder import extract_pandas_labels as extract_pandas_labels
from tensorfleet_legacy.contrib.learn.data_feeder import extract_pandas_matrix as extract_pandas_matrix
from tensorfleet_legacy.contrib.learn.generator_io import generator_input_fn as generator_input_fn
from tensorfleet_legacy.contrib.learn.text import read_batch_features as read_batch_features
import builtins
import typing
def numpy_input_fn(x: typing.Any, y: typing.Any = ..., batch_size: builtins.int = ..., num_epochs: builtins.int | None = ..., shuffle: builtins.bool | None = ..., queue_capacity: builtins.int = ..., num_threads: builtins.int = ...) -> typing.Any: ...
def pandas_input_fn(x: typing.Any, y: typing.Any = ..., batch_size: builtins.int = ..., num_epochs: builtins.int | None = ..., shuffle: builtins.bool | None = ..., queue_capacity: builtins.int = ..., num_threads: builtins.int = ..., target_column: builtins.str = ...) -> typing.Any: ...
