# Written by tools/make_stubs.py.
from tensorfleet.api.data.csv import CsvDataset as CsvDataset
from tensorfleet.api.data.csv import make_batched_features_dataset as make_batched_features_dataset
from tensorfleet.api.data.csv import make_csv_dataset as make_csv_dataset
from tensorfleet.api.data.experimental import Counter as Counter
from tensorfleet.api.data.experimental import RandomDataset as RandomDataset
from tensorfleet.api.data.experimental import TFRecordWriter as TFRecordWriter
from tensorfleet.api.data.experimental import bucket_by_sequence_length as bucket_by_sequence_length
from tensorfleet.api.data.experimental import choose_from_datasets as choose_from_datasets
from tensorfleet.api.data.experimental import copy_to_device as copy_to_device
from tensorfleet.api.data.experimental import enumerate_dataset as enumerate_dataset
from tensorfleet.api.data.experimental import get_single_element as get_single_element
from tensorfleet.api.data.experimental import group_by_window as group_by_window
from tensorfleet.api.data.experimental import ignore_errors as ignore_errors
from tensorfleet.api.data.experimental import map_and_batch as _map_and_batch_with_legacy_function
from tensorfleet.api.data.experimental import map_and_batch as map_and_batch
from tensorfleet.api.data.experimental import parallel_interleave as parallel_interleave
from tensorfleet.api.data.experimental import parse_example_dataset as parse_example_dataset
from tensorfleet.api.data.experimental import prefetch_to_device as prefetch_to_device
from tensorfleet.api.data.experimental import sample_from_datasets as sample_from_datasets
from tensorfleet.api.data.experimental import scan as scan
from tensorfleet.api.data.experimental import shuffle_and_repeat as shuffle_and_repeat
from tensorfleet.api.data.experimental import take_while as take_while
from tensorfleet.api.data.experimental import unbatch as unbatch
from tensorfleet.api.data.experimental import unique as unique
from tensorfleet.api.data.experimental_sources import Reducer as Reducer
from tensorfleet.api.data.experimental_sources import StatsAggregator as StatsAggregator
from tensorfleet.api.data.experimental_sources import bytes_produced_stats as bytes_produced_stats
from tensorfleet.api.data.experimental_sources import cardinality as cardinality
from tensorfleet.api.data.experimental_sources import dense_to_sparse_batch as dense_to_sparse_batch
from tensorfleet.api.data.experimental_sources import from_variant as from_variant
from tensorfleet.api.data.experimental_sources import get_structure as get_structure
from tensorfleet.api.data.experimental_sources import group_by_reducer as group_by_reducer
from tensorfleet.api.data.experimental_sources import latency_stats as latency_stats
from tensorfleet.api.data.experimental_sources import rejection_resample as rejection_resample
from tensorfleet.api.data.experimental_sources import to_variant as to_variant
from tensorfleet.api.data.optional import Optional as Optional
from tensorfleet.api.data.optional import get_next_as_optional as get_next_as_optional
from tensorfleet.api.data.options import AutoShardPolicy as AutoShardPolicy
from tensorfleet.api.data.options import DistributeOptions as DistributeOptions
from tensorfleet.api.data.options import MapVectorizationOptions as MapVectorizationOptions
from tensorfleet.api.data.options import OptimizationOptions as OptimizationOptions
from tensorfleet.api.data.options import StatsOptions as StatsOptions
from tensorfleet.api.data.options import ThreadingOptions as ThreadingOptions
from tensorfleet.api.data.specs import DatasetSpec as _DatasetStructure
from tensorfleet.api.data.specs import OptionalSpec as _OptionalStructure
from tensorfleet.api.data.sql import SqlDataset as SqlDataset
from tensorfleet.api.train.input_saving import CheckpointInputPipelineHook as CheckpointInputPipelineHook
from tensorfleet.api.train.input_saving import make_saveable_from_iterator as make_saveable_from_iterator
from tensorfleet.ops.type_specs import TypeSpec as _Structure
from tensorfleet.ops.type_specs import ragged_tensor_structure as _RaggedTensorStructure
from tensorfleet.ops.type_specs import sparse_tensor_structure as _SparseTensorStructure
from tensorfleet.ops.type_specs import tensor_array_structure as _TensorArrayStructure
from tensorfleet.ops.type_specs import tensor_structure as _TensorStructure
import builtins
AUTOTUNE: builtins.int
DatasetStructure = _DatasetStructure
INFINITE_CARDINALITY: builtins.int
OptionalStructure = _OptionalStructure
RaggedTensorStructure = _RaggedTensorStructure
SparseTensorStructure = _SparseTensorStructure
Structure = _Structure
TensorArrayStructure = _TensorArrayStructure
TensorStructure = _TensorStructure
UNKNOWN_CARDINALITY: builtins.int
map_and_batch_with_legacy_function = _map_and_batch_with_legacy_function
