# Written by tools/make_stubs.py.
from tensorfleet_legacy.feature_column.feature_column import bucketized_column as bucketized_column
from tensorfleet_legacy.feature_column.feature_column import categorical_column_with_hash_bucket as categorical_column_with_hash_bucket
from tensorfleet_legacy.feature_column.feature_column import categorical_column_with_identity as categorical_column_with_identity
from tensorfleet_legacy.feature_column.feature_column import categorical_column_with_vocabulary_file as categorical_column_with_vocabulary_file
from tensorfleet_legacy.feature_column.feature_column import categorical_column_with_vocabulary_list as categorical_column_with_vocabulary_list
from tensorfleet_legacy.feature_column.feature_column import crossed_column as crossed_column
from tensorfleet_legacy.feature_column.feature_column import embedding_column as embedding_column
from tensorfleet_legacy.feature_column.feature_column import indicator_column as indicator_column
from tensorfleet_legacy.feature_column.feature_column import numeric_column as numeric_column
from tensorfleet_legacy.feature_column.feature_column import shared_embedding_columns as shared_embedding_columns
from tensorfleet_legacy.feature_column.feature_column import weighted_categorical_column as weighted_categorical_column
from tensorfleet_legacy.feature_column.feature_column_inputs import input_layer as input_layer
from tensorfleet_legacy.feature_column.feature_column_inputs import linear_model as linear_model
from tensorfleet_legacy.feature_column.feature_column_inputs import make_parse_example_spec as make_parse_example_spec
from tensorfleet_legacy.feature_column.sequence_feature_column import sequence_numeric_column as sequence_numeric_column
import builtins
import typing
def sequence_categorical_column_with_hash_bucket(key: builtins.str, hash_bucket_size: builtins.int, dtype: typing.Any = ...) -> typing.Any: ...
def sequence_categorical_column_with_identity(key: builtins.str, num_buckets: builtins.int, default_value: typing.Any = ...) -> typing.Any: ...
def sequence_categorical_column_with_vocabulary_file(key: builtins.str, vocabulary_file: builtins.str, vocabulary_size: builtins.int | None = ..., num_oov_buckets: builtins.int = ..., default_value: typing.Any = ..., dtype: typing.Any = ...) -> typing.Any: ...
def sequence_categorical_column_with_vocabulary_list(key: builtins.str, vocabulary_list: typing.Any, dtype: typing.Any = ..., default_value: builtins.int = ..., num_oov_buckets: builtins.int = ...) -> typing.Any: ...
