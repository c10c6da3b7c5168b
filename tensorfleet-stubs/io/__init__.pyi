# Written by tools/make_stubs.py.
from tensorfleet.api.image.boxes import is_jpeg as is_jpeg
from tensorfleet.api.variables.file_names import match_filenames_once as match_filenames_once
from tensorfleet.base.formats.records import TFRecordCompressionType as TFRecordCompressionType
from tensorfleet.base.formats.records import TFRecordOptions as TFRecordOptions
from tensorfleet.base.formats.records import TFRecordWriter as TFRecordWriter
from tensorfleet.base.formats.records import tf_record_iterator as tf_record_iterator
from tensorfleet.graph.meta_graph import write_graph as write_graph
from tensorfleet.io import gfile as gfile
from tensorfleet.ops.image.codec import decode_bmp as decode_bmp
from tensorfleet.ops.image.codec import decode_gif as decode_gif
from tensorfleet.ops.image.codec import decode_image as decode_image
from tensorfleet.ops.image.codec import decode_png as decode_png
from tensorfleet.ops.image.codec import extract_jpeg_shape as extract_jpeg_shape
from tensorfleet.ops.input.csv import decode_csv as decode_csv
from tensorfleet.ops.input.decode import decode_compressed as decode_compressed
from tensorfleet.ops.input.decode import decode_json_example as decode_json_example
from tensorfleet.ops.input.decode import decode_raw as decode_raw
from tensorfleet.ops.input.decode import parse_tensor as parse_tensor
from tensorfleet.ops.input.decode import serialize_tensor as serialize_tensor
from tensorfleet.ops.input.files import matching_files as matching_files
from tensorfleet.ops.input.files import read_file as read_file
from tensorfleet.ops.input.files import write_file as write_file
from tensorfleet.ops.input.parsing import FixedLenFeature as FixedLenFeature
from tensorfleet.ops.input.parsing import FixedLenSequenceFeature as FixedLenSequenceFeature
from tensorfleet.ops.input.parsing import SparseFeature as SparseFeature
from tensorfleet.ops.input.parsing import VarLenFeature as VarLenFeature
from tensorfleet.ops.input.parsing import parse_example as parse_example
from tensorfleet.ops.input.parsing import parse_sequence_example as parse_sequence_example
from tensorfleet.ops.input.parsing import parse_single_example as parse_single_example
from tensorfleet.ops.input.parsing import parse_single_sequence_example as parse_single_sequence_example
from tensorfleet.ops.input.proto_ops import decode_proto as decode_proto
from tensorfleet.ops.input.proto_ops import encode_proto as encode_proto
from tensorfleet.ops.sparse.serialize import deserialize_many_sparse as deserialize_many_sparse
from tensorfleet.ops.sparse.serialize import serialize_many_sparse as serialize_many_sparse
from tensorfleet.ops.sparse.serialize import serialize_sparse as serialize_sparse
from tensorfleet.ops.state.queues import PaddingFIFOQueue as PaddingFIFOQueue
from tensorfleet.ops.state.queues import PriorityQueue as PriorityQueue
from tensorfleet.ops.state.queues import QueueBase as QueueBase
from tensorfleet.ops.state.queues import RandomShuffleQueue as RandomShuffleQueue
from tensorfleet.ops.string.base64 import decode_base64 as decode_base64
from tensorfleet.ops.string.base64 import encode_base64 as encode_base64
import typing
def decode_and_crop_jpeg(contents: typing.Any, crop_window: typing.Any, channels: typing.Any = ..., ratio: typing.Any = ..., fancy_upscaling: typing.Any = ..., try_recover_truncated: typing.Any = ..., acceptable_fraction: typing.Any = ..., dct_method: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def decode_jpeg(contents: typing.Any, channels: typing.Any = ..., ratio: typing.Any = ..., fancy_upscaling: typing.Any = ..., try_recover_truncated: typing.Any = ..., acceptable_fraction: typing.Any = ..., dct_method: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def encode_jpeg(image: typing.Any, format: typing.Any = ..., quality: typing.Any = ..., progressive: typing.Any = ..., optimize_size: typing.Any = ..., chroma_downsampling: typing.Any = ..., density_unit: typing.Any = ..., x_density: typing.Any = ..., y_density: typing.Any = ..., xmp_metadata: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
