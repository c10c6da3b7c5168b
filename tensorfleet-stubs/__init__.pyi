# Written by tools/make_stubs.py.
from tensorfleet import app as app
from tensorfleet import audio as audio
from tensorfleet import autograph as autograph
from tensorfleet import bitwise as bitwise
from tensorfleet import compat as compat
from tensorfleet import config as config
from tensorfleet import contrib as contrib
from tensorfleet import core as core
from tensorfleet import data as data
from tensorfleet import debugging as debugging
from tensorfleet import distribute as distribute
from tensorfleet import distributions as distributions
from tensorfleet import dtypes as dtypes
from tensorfleet import errors as errors
from tensorfleet import estimator as estimator
from tensorfleet import examples as examples
from tensorfleet import experimental as experimental
from tensorfleet import feature_column as feature_column
from tensorfleet import fleet as fleet
from tensorfleet import gfile as gfile
from tensorfleet import graph_util as graph_util
from tensorfleet import image as image
from tensorfleet import initializers as initializers
from tensorfleet import io as io
from tensorfleet import keras as keras
from tensorfleet import layers as layers
from tensorfleet import linalg as linalg
from tensorfleet import logging as logging
from tensorfleet import lookup as lookup
from tensorfleet import losses as losses
from tensorfleet import manip as manip
from tensorfleet import math as math
from tensorfleet import metrics as metrics
from tensorfleet import models as models
from tensorfleet import nest as nest
from tensorfleet import nn as nn
from tensorfleet import profiler as profiler
from tensorfleet import python as python
from tensorfleet import python_io as python_io
from tensorfleet import pywrap_tensorflow as pywrap_tensorflow
from tensorfleet import quantization as quantization
from tensorfleet import queue as queue
from tensorfleet import ragged as ragged
from tensorfleet import random as random
from tensorfleet import raw_ops as raw_ops
from tensorfleet import resource_loader as resource_loader
from tensorfleet import saved_model as saved_model
from tensorfleet import sets as sets
from tensorfleet import signal as signal
from tensorfleet import sparse as sparse
from tensorfleet import spectral as spectral
from tensorfleet import strings as strings
from tensorfleet import summary as summary
from tensorfleet import sysconfig as sysconfig
from tensorfleet import test as test
from tensorfleet import tpu as tpu
from tensorfleet import train as train
from tensorfleet import user_ops as user_ops
from tensorfleet import version as version
from tensorfleet import xla as xla
from tensorfleet.api.data.specs import OptionalSpec as OptionalSpec
from tensorfleet.api.functions.batching import nondifferentiable_batch_function as nondifferentiable_batch_function
from tensorfleet.api.functions.def_function import function as function
from tensorfleet.api.functions.py_function import py_function as py_function
from tensorfleet.api.functions.wrapping import wrap_function as wrap_function
from tensorfleet.api.summary.old_names import audio_summary as audio_summary
from tensorfleet.api.summary.old_names import histogram_summary as histogram_summary
from tensorfleet.api.summary.old_names import image_summary as image_summary
from tensorfleet.api.summary.old_names import merge_all_summaries as merge_all_summaries
from tensorfleet.api.summary.old_names import merge_summary as merge_summary
from tensorfleet.api.summary.old_names import scalar_summary as scalar_summary
from tensorfleet.api.variables.base import Variable as Variable
from tensorfleet.api.variables.base import VariableAggregation as VariableAggregation
from tensorfleet.api.variables.base import VariableSynchronization as VariableSynchronization
from tensorfleet.api.variables.creation import disable_resource_variables as disable_resource_variables
from tensorfleet.api.variables.creation import enable_resource_variables as enable_resource_variables
from tensorfleet.api.variables.creation import resource_variables_enabled as resource_variables_enabled
from tensorfleet.api.variables.creation import variable_creator_scope as variable_creator_scope
from tensorfleet.api.variables.initializers import Constant as _constant_initializer
from tensorfleet.api.variables.initializers import GlorotNormal as _glorot_normal_initializer
from tensorfleet.api.variables.initializers import GlorotUniform as _glorot_uniform_initializer
from tensorfleet.api.variables.initializers import Ones as _ones_initializer
from tensorfleet.api.variables.initializers import Orthogonal as _orthogonal_initializer
from tensorfleet.api.variables.initializers import RandomNormal as _random_normal_initializer
from tensorfleet.api.variables.initializers import RandomUniform as _random_uniform_initializer
from tensorfleet.api.variables.initializers import TruncatedNormal as _truncated_normal_initializer
from tensorfleet.api.variables.initializers import UniformUnitScaling as _uniform_unit_scaling_initializer
from tensorfleet.api.variables.initializers import VarianceScaling as _variance_scaling_initializer
from tensorfleet.api.variables.initializers import Zeros as _zeros_initializer
from tensorfleet.api.variables.lists import all_variables as all_variables
from tensorfleet.api.variables.lists import assert_variables_initialized as assert_variables_initialized
from tensorfleet.api.variables.lists import global_variables as global_variables
from tensorfleet.api.variables.lists import global_variables_initializer as global_variables_initializer
from tensorfleet.api.variables.lists import initialize_all_variables as initialize_all_variables
from tensorfleet.api.variables.lists import initialize_local_variables as initialize_local_variables
from tensorfleet.api.variables.lists import initialize_variables as initialize_variables
from tensorfleet.api.variables.lists import local_variables as local_variables
from tensorfleet.api.variables.lists import local_variables_initializer as local_variables_initializer
from tensorfleet.api.variables.lists import model_variables as model_variables
from tensorfleet.api.variables.lists import moving_average_variables as moving_average_variables
from tensorfleet.api.variables.lists import report_uninitialized_variables as report_uninitialized_variables
from tensorfleet.api.variables.lists import trainable_variables as trainable_variables
from tensorfleet.api.variables.lists import variables_initializer as variables_initializer
from tensorfleet.api.variables.module import Module as Module
from tensorfleet.api.variables.partitioned import fixed_size_partitioner as fixed_size_partitioner
from tensorfleet.api.variables.partitioned import min_max_variable_partitioner as min_max_variable_partitioner
from tensorfleet.api.variables.partitioned import variable_axis_size_partitioner as variable_axis_size_partitioner
from tensorfleet.api.variables.scope import VariableScope as VariableScope
from tensorfleet.api.variables.scope import _ReuseMode as __ReuseMode
from tensorfleet.api.variables.scope import get_variable as get_variable
from tensorfleet.api.variables.scope import get_variable_scope as get_variable_scope
from tensorfleet.api.variables.scope import no_regularizer as no_regularizer
from tensorfleet.api.variables.scope import variable_op_scope as variable_op_scope
from tensorfleet.api.variables.scope import variable_scope as variable_scope
from tensorfleet.api.variables.template import create_partitioned_variables as create_partitioned_variables
from tensorfleet.api.variables.template import make_template as make_template
from tensorfleet.api.variables.variable import assign as assign
from tensorfleet.api.variables.variable import assign_add as assign_add
from tensorfleet.api.variables.variable import assign_sub as assign_sub
from tensorfleet.api.variables.variable import count_up_to as count_up_to
from tensorfleet.api.variables.variable import is_variable_initialized as is_variable_initialized
from tensorfleet.base.devices import DeviceSpec as DeviceSpec
from tensorfleet.base.dtypes import DType as DType
from tensorfleet.base.dtypes import DType as _DType
from tensorfleet.base.dtypes import as_dtype as as_dtype
from tensorfleet.base.errors import OpError as OpError
from tensorfleet.base.logging import get_logger as get_logger
from tensorfleet.base.platform import flags as flags
from tensorfleet.base.platform.libraries import load_file_system_library as load_file_system_library
from tensorfleet.base.platform.libraries import load_library as load_library
from tensorfleet.base.platform.libraries import load_op_library as load_op_library
from tensorfleet.base.protos.config_pb2 import ConfigProto as ConfigProto
from tensorfleet.base.protos.config_pb2 import GPUOptions as GPUOptions
from tensorfleet.base.protos.config_pb2 import GraphOptions as GraphOptions
from tensorfleet.base.protos.config_pb2 import OptimizerOptions as OptimizerOptions
from tensorfleet.base.protos.config_pb2 import RunMetadata as RunMetadata
from tensorfleet.base.protos.config_pb2 import RunOptions as RunOptions
from tensorfleet.base.protos.event_pb2 import Event as Event
from tensorfleet.base.protos.event_pb2 import HistogramProto as HistogramProto
from tensorfleet.base.protos.event_pb2 import LogMessage as LogMessage
from tensorfleet.base.protos.event_pb2 import SessionLog as SessionLog
from tensorfleet.base.protos.event_pb2 import Summary as Summary
from tensorfleet.base.protos.event_pb2 import SummaryMetadata as SummaryMetadata
from tensorfleet.base.protos.graph_pb2 import AttrValue as AttrValue
from tensorfleet.base.protos.graph_pb2 import GraphDef as GraphDef
from tensorfleet.base.protos.graph_pb2 import NameAttrList as NameAttrList
from tensorfleet.base.protos.graph_pb2 import NodeDef as NodeDef
from tensorfleet.base.protos.meta_graph_pb2 import MetaGraphDef as MetaGraphDef
from tensorfleet.base.protos.meta_graph_pb2 import TensorInfo as TensorInfo
from tensorfleet.base.shapes import Dimension as Dimension
from tensorfleet.base.shapes import TensorShape as TensorShape
from tensorfleet.base.shapes import dimension_at_index as dimension_at_index
from tensorfleet.base.shapes import dimension_value as dimension_value
from tensorfleet.graph.apply import constant as constant
from tensorfleet.graph.convert import convert_to_tensor as convert_to_tensor
from tensorfleet.graph.convert import register_tensor_conversion_function as register_tensor_conversion_function
from tensorfleet.graph.custom_gradient import custom_gradient as custom_gradient
from tensorfleet.graph.custom_gradient import recompute_grad as recompute_grad
from tensorfleet.graph.gradients import AggregationMethod as AggregationMethod
from tensorfleet.graph.gradients import UnconnectedGradients as UnconnectedGradients
from tensorfleet.graph.gradients import gradients as gradients
from tensorfleet.graph.graph import Graph as Graph
from tensorfleet.graph.hessians import hessians as hessians
from tensorfleet.graph.importing import import_graph_def as import_graph_def
from tensorfleet.graph.indexed_slices import IndexedSlices as IndexedSlices
from tensorfleet.graph.operation import Operation as Operation
from tensorfleet.graph.operation import Tensor as Tensor
from tensorfleet.graph.registry import NotDifferentiable as NotDifferentiable
from tensorfleet.graph.registry import NotDifferentiable as _NoGradient
from tensorfleet.graph.registry import NotDifferentiable as _no_gradient
from tensorfleet.graph.registry import RegisterGradient as RegisterGradient
from tensorfleet.graph.scopes import GraphKeys as GraphKeys
from tensorfleet.graph.scopes import add_to_collection as add_to_collection
from tensorfleet.graph.scopes import add_to_collections as add_to_collections
from tensorfleet.graph.scopes import colocate_with as colocate_with
from tensorfleet.graph.scopes import container as container
from tensorfleet.graph.scopes import control_dependencies as control_dependencies
from tensorfleet.graph.scopes import device as device
from tensorfleet.graph.scopes import get_collection as get_collection
from tensorfleet.graph.scopes import get_collection_ref as get_collection_ref
from tensorfleet.graph.scopes import get_default_graph as get_default_graph
from tensorfleet.graph.scopes import get_default_session as get_default_session
from tensorfleet.graph.scopes import name_scope as name_scope
from tensorfleet.graph.scopes import op_scope as op_scope
from tensorfleet.graph.scopes import reset_default_graph as reset_default_graph
from tensorfleet.graph.scopes import set_random_seed as set_random_seed
from tensorfleet.graph.sparse_tensor import SparseTensor as SparseTensor
from tensorfleet.graph.sparse_tensor import SparseTensorValue as SparseTensorValue
from tensorfleet.graph.sparse_tensor import convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor
from tensorfleet.graph.tensor_proto import make_ndarray as make_ndarray
from tensorfleet.graph.tensor_proto import make_tensor_proto as make_tensor_proto
from tensorfleet.ops.array.basic import group as group
from tensorfleet.ops.array.basic import identity as identity
from tensorfleet.ops.array.basic import identity_n as identity_n
from tensorfleet.ops.array.basic import no_op as no_op
from tensorfleet.ops.array.basic import placeholder as placeholder
from tensorfleet.ops.array.basic import placeholder_with_default as placeholder_with_default
from tensorfleet.ops.array.basic import stop_gradient as stop_gradient
from tensorfleet.ops.array.basic import tuple_ as _tuple
from tensorfleet.ops.array.bits import bitcast as bitcast
from tensorfleet.ops.array.bits import check_numerics as check_numerics
from tensorfleet.ops.array.bits import ensure_shape as ensure_shape
from tensorfleet.ops.array.broadcast import broadcast_dynamic_shape as broadcast_dynamic_shape
from tensorfleet.ops.array.broadcast import broadcast_static_shape as broadcast_static_shape
from tensorfleet.ops.array.broadcast import broadcast_to as broadcast_to
from tensorfleet.ops.array.checks import Assert as Assert
from tensorfleet.ops.array.checks import assert_integer as assert_integer
from tensorfleet.ops.array.checks import assert_near as assert_near
from tensorfleet.ops.array.checks import assert_proper_iterable as assert_proper_iterable
from tensorfleet.ops.array.checks import assert_rank as assert_rank
from tensorfleet.ops.array.checks import assert_rank_at_least as assert_rank_at_least
from tensorfleet.ops.array.checks import assert_rank_in as assert_rank_in
from tensorfleet.ops.array.checks import assert_same_float_dtype as assert_same_float_dtype
from tensorfleet.ops.array.checks import assert_scalar as assert_scalar
from tensorfleet.ops.array.checks import assert_type as assert_type
from tensorfleet.ops.array.checks import is_non_decreasing as is_non_decreasing
from tensorfleet.ops.array.checks import is_numeric_tensor as is_numeric_tensor
from tensorfleet.ops.array.checks import is_strictly_increasing as is_strictly_increasing
from tensorfleet.ops.array.checks import verify_tensor_all_finite as verify_tensor_all_finite
from tensorfleet.ops.array.constructors import eye as eye
from tensorfleet.ops.array.constructors import fill as fill
from tensorfleet.ops.array.constructors import meshgrid as meshgrid
from tensorfleet.ops.array.constructors import one_hot as one_hot
from tensorfleet.ops.array.constructors import ones as ones
from tensorfleet.ops.array.constructors import ones_like as ones_like
from tensorfleet.ops.array.constructors import range_ as _range
from tensorfleet.ops.array.constructors import sequence_mask as sequence_mask
from tensorfleet.ops.array.constructors import zeros as zeros
from tensorfleet.ops.array.constructors import zeros_like as zeros_like
from tensorfleet.ops.array.diagonals import diag as diag
from tensorfleet.ops.array.diagonals import diag_part as diag_part
from tensorfleet.ops.array.diagonals import matrix_band_part as matrix_band_part
from tensorfleet.ops.array.diagonals import matrix_diag as matrix_diag
from tensorfleet.ops.array.diagonals import matrix_diag_part as matrix_diag_part
from tensorfleet.ops.array.diagonals import matrix_set_diag as matrix_set_diag
from tensorfleet.ops.array.edit_distance import edit_distance as edit_distance
from tensorfleet.ops.array.gather import batch_gather as batch_gather
from tensorfleet.ops.array.gather import gather as gather
from tensorfleet.ops.array.gather import gather_nd as gather_nd
from tensorfleet.ops.array.indexing import boolean_mask as boolean_mask
from tensorfleet.ops.array.pad import pad as pad
from tensorfleet.ops.array.queries import add_check_numerics_ops as add_check_numerics_ops
from tensorfleet.ops.array.queries import control_flow_v2_enabled as control_flow_v2_enabled
from tensorfleet.ops.array.queries import convert_to_tensor_or_indexed_slices as convert_to_tensor_or_indexed_slices
from tensorfleet.ops.array.queries import executing_eagerly as executing_eagerly
from tensorfleet.ops.array.queries import get_static_value as get_static_value
from tensorfleet.ops.array.queries import grad_pass_through as grad_pass_through
from tensorfleet.ops.array.queries import guarantee_const as guarantee_const
from tensorfleet.ops.array.queries import init_scope as init_scope
from tensorfleet.ops.array.queries import is_tensor as is_tensor
from tensorfleet.ops.array.queries import timestamp as timestamp
from tensorfleet.ops.array.scatter import scatter_nd as scatter_nd
from tensorfleet.ops.array.scatter import tensor_scatter_add as _tensor_scatter_nd_add
from tensorfleet.ops.array.scatter import tensor_scatter_add as tensor_scatter_add
from tensorfleet.ops.array.scatter import tensor_scatter_sub as _tensor_scatter_nd_sub
from tensorfleet.ops.array.scatter import tensor_scatter_sub as tensor_scatter_sub
from tensorfleet.ops.array.scatter import tensor_scatter_update as _tensor_scatter_nd_update
from tensorfleet.ops.array.scatter import tensor_scatter_update as tensor_scatter_update
from tensorfleet.ops.array.shape import expand_dims as expand_dims
from tensorfleet.ops.array.shape import rank as rank
from tensorfleet.ops.array.shape import reshape as reshape
from tensorfleet.ops.array.shape import shape as shape
from tensorfleet.ops.array.shape import shape_n as shape_n
from tensorfleet.ops.array.shape import size as size
from tensorfleet.ops.array.shape import squeeze as squeeze
from tensorfleet.ops.array.slicing import slice_ as _slice
from tensorfleet.ops.array.slicing import strided_slice as strided_slice
from tensorfleet.ops.array.space_blocks import batch_to_space as batch_to_space
from tensorfleet.ops.array.space_blocks import batch_to_space_nd as batch_to_space_nd
from tensorfleet.ops.array.space_blocks import depth_to_space as depth_to_space
from tensorfleet.ops.array.space_blocks import required_space_to_batch_paddings as required_space_to_batch_paddings
from tensorfleet.ops.array.space_blocks import space_to_batch as space_to_batch
from tensorfleet.ops.array.space_blocks import space_to_batch_nd as space_to_batch_nd
from tensorfleet.ops.array.space_blocks import space_to_depth as space_to_depth
from tensorfleet.ops.array.stack import parallel_stack as parallel_stack
from tensorfleet.ops.array.stack import stack as stack
from tensorfleet.ops.array.stack import unstack as unstack
from tensorfleet.ops.array.tile_roll_reverse import repeat as repeat
from tensorfleet.ops.array.tile_roll_reverse import reverse as _reverse_v2
from tensorfleet.ops.array.tile_roll_reverse import reverse as reverse
from tensorfleet.ops.array.tile_roll_reverse import reverse_sequence as reverse_sequence
from tensorfleet.ops.array.tile_roll_reverse import roll as roll
from tensorfleet.ops.array.tile_roll_reverse import tile as tile
from tensorfleet.ops.array.transpose import invert_permutation as invert_permutation
from tensorfleet.ops.array.transpose import matrix_transpose as matrix_transpose
from tensorfleet.ops.array.transpose import transpose as transpose
from tensorfleet.ops.array.unique_partition import dynamic_partition as dynamic_partition
from tensorfleet.ops.array.unique_partition import dynamic_stitch as dynamic_stitch
from tensorfleet.ops.array.unique_partition import setdiff1d as setdiff1d
from tensorfleet.ops.array.unique_partition import unique as unique
from tensorfleet.ops.array.unique_partition import unique_with_counts as unique_with_counts
from tensorfleet.ops.control.branches import switch_case as switch_case
from tensorfleet.ops.control.branches import vectorized_map as vectorized_map
from tensorfleet.ops.control.cond import case as case
from tensorfleet.ops.control.cond import cond as cond
from tensorfleet.ops.control.functional import map_fn as map_fn
from tensorfleet.ops.control.functional import scan as scan
from tensorfleet.ops.control.host_ops import Print as Print
from tensorfleet.ops.control.host_ops import numpy_function as numpy_function
from tensorfleet.ops.control.host_ops import print_ as _print
from tensorfleet.ops.control.host_ops import py_func as py_func
from tensorfleet.ops.control.while_loop import while_loop as while_loop
from tensorfleet.ops.image.patches import extract_image_patches as extract_image_patches
from tensorfleet.ops.image.patches import extract_volume_patches as extract_volume_patches
from tensorfleet.ops.input.csv import decode_csv as decode_csv
from tensorfleet.ops.input.decode import decode_compressed as decode_compressed
from tensorfleet.ops.input.decode import decode_json_example as decode_json_example
from tensorfleet.ops.input.decode import decode_raw as decode_raw
from tensorfleet.ops.input.decode import parse_tensor as parse_tensor
from tensorfleet.ops.input.decode import serialize_tensor as serialize_tensor
from tensorfleet.ops.input.files import matching_files as matching_files
from tensorfleet.ops.input.files import read_file as read_file
from tensorfleet.ops.input.files import write_file as write_file
from tensorfleet.ops.input.lmdb_reader import LMDBReader as LMDBReader
from tensorfleet.ops.input.parsing import FixedLenFeature as FixedLenFeature
from tensorfleet.ops.input.parsing import FixedLenSequenceFeature as FixedLenSequenceFeature
from tensorfleet.ops.input.parsing import SparseFeature as SparseFeature
from tensorfleet.ops.input.parsing import VarLenFeature as VarLenFeature
from tensorfleet.ops.input.parsing import parse_example as parse_example
from tensorfleet.ops.input.parsing import parse_single_example as parse_single_example
from tensorfleet.ops.input.parsing import parse_single_sequence_example as parse_single_sequence_example
from tensorfleet.ops.input.readers import FixedLengthRecordReader as FixedLengthRecordReader
from tensorfleet.ops.input.readers import IdentityReader as IdentityReader
from tensorfleet.ops.input.readers import ReaderBase as ReaderBase
from tensorfleet.ops.input.readers import TFRecordReader as TFRecordReader
from tensorfleet.ops.input.readers import TextLineReader as TextLineReader
from tensorfleet.ops.input.readers import WholeFileReader as WholeFileReader
from tensorfleet.ops.linalg.contract import einsum as einsum
from tensorfleet.ops.linalg.contract import tensordot as tensordot
from tensorfleet.ops.linalg.derived import cross as cross
from tensorfleet.ops.linalg.derived import trace as trace
from tensorfleet.ops.linalg.factorizations import cholesky as cholesky
from tensorfleet.ops.linalg.factorizations import qr as qr
from tensorfleet.ops.linalg.factorizations import self_adjoint_eig as self_adjoint_eig
from tensorfleet.ops.linalg.factorizations import self_adjoint_eigvals as self_adjoint_eigvals
from tensorfleet.ops.linalg.factorizations import svd as svd
from tensorfleet.ops.linalg.least_squares import matrix_solve_ls as matrix_solve_ls
from tensorfleet.ops.linalg.matmul import matmul as matmul
from tensorfleet.ops.linalg.matrix_functions import matrix_square_root as matrix_square_root
from tensorfleet.ops.linalg.solve import cholesky_solve as cholesky_solve
from tensorfleet.ops.linalg.solve import matrix_determinant as matrix_determinant
from tensorfleet.ops.linalg.solve import matrix_inverse as matrix_inverse
from tensorfleet.ops.linalg.solve import matrix_solve as matrix_solve
from tensorfleet.ops.linalg.solve import matrix_triangular_solve as matrix_triangular_solve
from tensorfleet.ops.math.binary import add as add
from tensorfleet.ops.math.binary import div as div
from tensorfleet.ops.math.binary import div_no_nan as div_no_nan
from tensorfleet.ops.math.binary import divide as divide
from tensorfleet.ops.math.binary import floordiv as floordiv
from tensorfleet.ops.math.binary import floormod as _mod
from tensorfleet.ops.math.binary import floormod as floormod
from tensorfleet.ops.math.binary import squared_difference as squared_difference
from tensorfleet.ops.math.binary import truediv as truediv
from tensorfleet.ops.math.cast import cast as cast
from tensorfleet.ops.math.cast import saturate_cast as saturate_cast
from tensorfleet.ops.math.clip import clip_by_average_norm as clip_by_average_norm
from tensorfleet.ops.math.clip import clip_by_global_norm as clip_by_global_norm
from tensorfleet.ops.math.clip import clip_by_norm as clip_by_norm
from tensorfleet.ops.math.clip import clip_by_value as clip_by_value
from tensorfleet.ops.math.clip import global_norm as global_norm
from tensorfleet.ops.math.clip import norm as norm
from tensorfleet.ops.math.compare import logical_xor as logical_xor
from tensorfleet.ops.math.compare import where as where
from tensorfleet.ops.math.compare import where_v2 as where_v2
from tensorfleet.ops.math.complex_numbers import angle as angle
from tensorfleet.ops.math.complex_numbers import complex as complex
from tensorfleet.ops.math.complex_numbers import conj as conj
from tensorfleet.ops.math.complex_numbers import imag as imag
from tensorfleet.ops.math.complex_numbers import real as real
from tensorfleet.ops.math.histograms import confusion_matrix as confusion_matrix
from tensorfleet.ops.math.histograms import histogram_fixed_width as histogram_fixed_width
from tensorfleet.ops.math.histograms import histogram_fixed_width_bins as histogram_fixed_width_bins
from tensorfleet.ops.math.histograms import unravel_index as unravel_index
from tensorfleet.ops.math.reduce_functions import arg_max as arg_max
from tensorfleet.ops.math.reduce_functions import arg_min as arg_min
from tensorfleet.ops.math.reduce_functions import count_nonzero as count_nonzero
from tensorfleet.ops.math.scans import cumprod as cumprod
from tensorfleet.ops.math.scans import cumsum as cumsum
from tensorfleet.ops.math.segments import unsorted_segment_mean as unsorted_segment_mean
from tensorfleet.ops.math.segments import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
from tensorfleet.ops.math.sorting import argsort as argsort
from tensorfleet.ops.math.sorting import searchsorted as searchsorted
from tensorfleet.ops.math.sorting import sort as sort
from tensorfleet.ops.math.special import lbeta as lbeta
from tensorfleet.ops.math.special import zeta as zeta
from tensorfleet.ops.math.sums import accumulate_n as accumulate_n
from tensorfleet.ops.math.sums import add_n as add_n
from tensorfleet.ops.math.sums import bincount as bincount
from tensorfleet.ops.math.sums import linspace as _lin_space
from tensorfleet.ops.math.sums import linspace as linspace
from tensorfleet.ops.math.sums import scalar_mul as scalar_mul
from tensorfleet.ops.math.trigonometry import log_sigmoid as log_sigmoid
from tensorfleet.ops.math.unary import abs as abs
from tensorfleet.ops.math.unary import is_finite as is_finite
from tensorfleet.ops.math.unary import round as round
from tensorfleet.ops.math.unary import sign as sign
from tensorfleet.ops.quantized.fake import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from tensorfleet.ops.quantized.fake import fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel
from tensorfleet.ops.quantized.nn import quantized_concat as quantized_concat
from tensorfleet.ops.quantized.quantize import dequantize as dequantize
from tensorfleet.ops.quantized.quantize import quantize_v2 as quantize_v2
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor as RaggedTensor
from tensorfleet.ops.random.ops import get_seed as get_seed
from tensorfleet.ops.random.ops import multinomial as multinomial
from tensorfleet.ops.random.ops import random_crop as random_crop
from tensorfleet.ops.random.ops import random_gamma as random_gamma
from tensorfleet.ops.random.ops import random_poisson as random_poisson
from tensorfleet.ops.random.ops import random_shuffle as random_shuffle
from tensorfleet.ops.random.ops import random_uniform as random_uniform
from tensorfleet.ops.sparse.arrange import sparse_concat as sparse_concat
from tensorfleet.ops.sparse.arrange import sparse_reshape as sparse_reshape
from tensorfleet.ops.sparse.arrange import sparse_slice as sparse_slice
from tensorfleet.ops.sparse.dense import sparse_placeholder as sparse_placeholder
from tensorfleet.ops.sparse.dense import sparse_tensor_to_dense as sparse_tensor_to_dense
from tensorfleet.ops.sparse.elements import sparse_reduce_max as sparse_reduce_max
from tensorfleet.ops.sparse.elements import sparse_reduce_max_sparse as sparse_reduce_max_sparse
from tensorfleet.ops.sparse.elements import sparse_reduce_sum as sparse_reduce_sum
from tensorfleet.ops.sparse.elements import sparse_reduce_sum_sparse as sparse_reduce_sum_sparse
from tensorfleet.ops.sparse.elements import sparse_softmax as sparse_softmax
from tensorfleet.ops.sparse.math import sparse_add as sparse_add
from tensorfleet.ops.sparse.math import sparse_maximum as sparse_maximum
from tensorfleet.ops.sparse.math import sparse_minimum as sparse_minimum
from tensorfleet.ops.sparse.math import sparse_tensor_dense_matmul as sparse_tensor_dense_matmul
from tensorfleet.ops.sparse.order import sparse_fill_empty_rows as sparse_fill_empty_rows
from tensorfleet.ops.sparse.order import sparse_mask as sparse_mask
from tensorfleet.ops.sparse.order import sparse_merge as sparse_merge
from tensorfleet.ops.sparse.order import sparse_reorder as sparse_reorder
from tensorfleet.ops.sparse.order import sparse_reset_shape as sparse_reset_shape
from tensorfleet.ops.sparse.order import sparse_retain as sparse_retain
from tensorfleet.ops.sparse.order import sparse_to_indicator as sparse_to_indicator
from tensorfleet.ops.sparse.order import sparse_transpose as sparse_transpose
from tensorfleet.ops.sparse.segments import sparse_segment_mean as sparse_segment_mean
from tensorfleet.ops.sparse.segments import sparse_segment_sqrt_n as sparse_segment_sqrt_n
from tensorfleet.ops.sparse.segments import sparse_segment_sum as sparse_segment_sum
from tensorfleet.ops.sparse.serialize import deserialize_many_sparse as deserialize_many_sparse
from tensorfleet.ops.sparse.serialize import serialize_many_sparse as serialize_many_sparse
from tensorfleet.ops.sparse.serialize import serialize_sparse as serialize_sparse
from tensorfleet.ops.state.accumulators import ConditionalAccumulator as ConditionalAccumulator
from tensorfleet.ops.state.accumulators import ConditionalAccumulatorBase as ConditionalAccumulatorBase
from tensorfleet.ops.state.accumulators import SparseConditionalAccumulator as SparseConditionalAccumulator
from tensorfleet.ops.state.critical_section import CriticalSection as CriticalSection
from tensorfleet.ops.state.lookup import initialize_all_tables as initialize_all_tables
from tensorfleet.ops.state.lookup import tables_initializer as tables_initializer
from tensorfleet.ops.state.queues import FIFOQueue as FIFOQueue
from tensorfleet.ops.state.queues import PaddingFIFOQueue as PaddingFIFOQueue
from tensorfleet.ops.state.queues import PriorityQueue as PriorityQueue
from tensorfleet.ops.state.queues import QueueBase as QueueBase
from tensorfleet.ops.state.queues import RandomShuffleQueue as RandomShuffleQueue
from tensorfleet.ops.state.scatter_variables import batch_scatter_update as batch_scatter_update
from tensorfleet.ops.state.session_tensors import delete_session_tensor as delete_session_tensor
from tensorfleet.ops.state.session_tensors import get_session_handle as get_session_handle
from tensorfleet.ops.state.session_tensors import get_session_tensor as get_session_tensor
from tensorfleet.ops.state.tensor_array import TensorArray as TensorArray
from tensorfleet.ops.string.base64 import decode_base64 as decode_base64
from tensorfleet.ops.string.base64 import encode_base64 as encode_base64
from tensorfleet.ops.string.elements import string_strip as string_strip
from tensorfleet.ops.string.elements import string_to_number as string_to_number
from tensorfleet.ops.string.elements import substr as substr
from tensorfleet.ops.string.hash import fingerprint as fingerprint
from tensorfleet.ops.string.hash import string_to_hash_bucket as string_to_hash_bucket
from tensorfleet.ops.string.hash import string_to_hash_bucket_fast as string_to_hash_bucket_fast
from tensorfleet.ops.string.hash import string_to_hash_bucket_strong as string_to_hash_bucket_strong
from tensorfleet.ops.string.join import string_join as string_join
from tensorfleet.ops.string.regex import regex_replace as regex_replace
from tensorfleet.ops.string.split import reduce_join as reduce_join
from tensorfleet.ops.string.split import string_split as string_split
from tensorfleet.ops.type_specs import IndexedSlicesSpec as IndexedSlicesSpec
from tensorfleet.ops.type_specs import RaggedTensorSpec as RaggedTensorSpec
from tensorfleet.ops.type_specs import SparseTensorSpec as SparseTensorSpec
from tensorfleet.ops.type_specs import TensorArraySpec as TensorArraySpec
from tensorfleet.ops.type_specs import TensorSpec as TensorSpec
from tensorfleet.ops.type_specs import TypeSpec as TypeSpec
from tensorfleet.session.session import InteractiveSession as InteractiveSession
from tensorfleet.session.session import Session as Session
from tensorfleet_legacy.internals.eager.backprop import GradientTape as GradientTape
import builtins
import typing
AUTO_REUSE: __ReuseMode
COMPILER_VERSION: builtins.str
CXX11_ABI_FLAG: builtins.int
GIT_VERSION: builtins.str
GRAPH_DEF_VERSION: builtins.int
GRAPH_DEF_VERSION_MIN_CONSUMER: builtins.int
GRAPH_DEF_VERSION_MIN_PRODUCER: builtins.int
MONOLITHIC_BUILD: builtins.int
NoGradient = _NoGradient
QUANTIZED_DTYPES: typing.Any
VERSION: builtins.str
__compiler_version__: builtins.str
__git_version__: builtins.str
__version__: builtins.str
def acos(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def acosh(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def argmax(input: typing.Any, axis: typing.Any = ..., name: builtins.str | None = ..., dimension: typing.Any = ..., output_type: typing.Any = ...) -> typing.Any: ...
def argmin(input: typing.Any, axis: typing.Any = ..., name: builtins.str | None = ..., dimension: typing.Any = ..., output_type: typing.Any = ...) -> typing.Any: ...
def as_string(input: typing.Any, precision: typing.Any = ..., scientific: typing.Any = ..., shortest: typing.Any = ..., width: typing.Any = ..., fill: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def asin(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def asinh(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def assert_equal(x: typing.Any, y: typing.Any, data: typing.Any = ..., summarize: builtins.int | None = ..., message: builtins.str | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def assert_greater(x: typing.Any, y: typing.Any, data: typing.Any = ..., summarize: builtins.int | None = ..., message: builtins.str | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def assert_greater_equal(x: typing.Any, y: typing.Any, data: typing.Any = ..., summarize: builtins.int | None = ..., message: builtins.str | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def assert_less(x: typing.Any, y: typing.Any, data: typing.Any = ..., summarize: builtins.int | None = ..., message: builtins.str | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def assert_less_equal(x: typing.Any, y: typing.Any, data: typing.Any = ..., summarize: builtins.int | None = ..., message: builtins.str | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def assert_negative(x: typing.Any, data: typing.Any = ..., summarize: builtins.int | None = ..., message: builtins.str | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def assert_non_negative(x: typing.Any, data: typing.Any = ..., summarize: builtins.int | None = ..., message: builtins.str | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def assert_non_positive(x: typing.Any, data: typing.Any = ..., summarize: builtins.int | None = ..., message: builtins.str | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def assert_none_equal(x: typing.Any, y: typing.Any, data: typing.Any = ..., summarize: builtins.int | None = ..., message: builtins.str | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def assert_positive(x: typing.Any, data: typing.Any = ..., summarize: builtins.int | None = ..., message: builtins.str | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def atan(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def atan2(y: typing.Any, x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def atanh(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_cholesky(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_cholesky_solve(chol: typing.Any, rhs: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_fft(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_fft2d(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_fft3d(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_ifft(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_ifft2d(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_ifft3d(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_matmul(a: typing.Any, b: typing.Any, transpose_a: builtins.bool = ..., transpose_b: builtins.bool = ..., adjoint_a: builtins.bool = ..., adjoint_b: builtins.bool = ..., a_is_sparse: builtins.bool = ..., b_is_sparse: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def batch_matrix_band_part(input: typing.Any, num_lower: typing.Any, num_upper: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_matrix_determinant(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_matrix_diag(diagonal: typing.Any, name: builtins.str | None = ..., k: typing.Any = ..., num_rows: typing.Any = ..., num_cols: typing.Any = ..., padding_value: typing.Any = ...) -> typing.Any: ...
def batch_matrix_diag_part(input: typing.Any, name: builtins.str | None = ..., k: typing.Any = ..., padding_value: typing.Any = ...) -> typing.Any: ...
def batch_matrix_inverse(input: typing.Any, adjoint: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def batch_matrix_set_diag(input: typing.Any, diagonal: typing.Any, name: builtins.str | None = ..., k: typing.Any = ...) -> typing.Any: ...
def batch_matrix_solve(matrix: typing.Any, rhs: typing.Any, adjoint: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def batch_matrix_solve_ls(matrix: typing.Any, rhs: typing.Any, l2_regularizer: typing.Any = ..., fast: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def batch_matrix_transpose(a: typing.Any, name: builtins.str | None = ..., conjugate: builtins.bool = ...) -> typing.Any: ...
def batch_matrix_triangular_solve(matrix: typing.Any, rhs: typing.Any, lower: builtins.bool = ..., adjoint: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def batch_self_adjoint_eig(tensor: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_self_adjoint_eigvals(tensor: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def batch_svd(tensor: typing.Any, full_matrices: builtins.bool = ..., compute_uv: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def betainc(a: typing.Any, b: typing.Any, x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
bfloat16: _DType
bool: _DType
def ceil(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
complex128: _DType
complex64: _DType
def complex_abs(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def concat(values: typing.Any, axis: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def concat_v2(values: typing.Any, axis: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
constant_initializer = _constant_initializer
def cos(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def cosh(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def digamma(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def disable_control_flow_v2() -> typing.Any: ...
def disable_eager_execution() -> typing.Any: ...
def disable_tensor_equality() -> typing.Any: ...
def disable_v2_behavior() -> typing.Any: ...
def disable_v2_tensorshape() -> typing.Any: ...
double: _DType
def equal(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def erf(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def erfc(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def exp(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def expm1(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def fake_quant_with_min_max_args(inputs: typing.Any, min: typing.Any = ..., max: typing.Any = ..., num_bits: typing.Any = ..., narrow_range: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def fake_quant_with_min_max_args_gradient(gradients: typing.Any, inputs: typing.Any, min: typing.Any = ..., max: typing.Any = ..., num_bits: typing.Any = ..., narrow_range: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def fake_quant_with_min_max_vars_gradient(gradients: typing.Any, inputs: typing.Any, min: typing.Any, max: typing.Any, num_bits: typing.Any = ..., narrow_range: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def fake_quant_with_min_max_vars_per_channel_gradient(gradients: typing.Any, inputs: typing.Any, min: typing.Any, max: typing.Any, num_bits: typing.Any = ..., narrow_range: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def fft(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def fft2d(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def fft3d(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
float16: _DType
float32: _DType
float64: _DType
def floor(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def floor_div(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def foldl(fn: typing.Any, elems: typing.Any, initializer: typing.Any = ..., parallel_iterations: builtins.int = ..., back_prop: builtins.bool = ..., swap_memory: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def foldr(fn: typing.Any, elems: typing.Any, initializer: typing.Any = ..., parallel_iterations: builtins.int = ..., back_prop: builtins.bool = ..., swap_memory: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def get_local_variable(name: builtins.str, shape: typing.Any = ..., dtype: typing.Any = ..., initializer: typing.Any = ..., regularizer: typing.Any = ..., trainable: builtins.bool | None = ..., collections: typing.Any = ..., caching_device: typing.Any = ..., partitioner: typing.Any = ..., validate_shape: builtins.bool = ..., use_resource: builtins.bool | None = ..., custom_getter: typing.Any = ..., constraint: typing.Any = ..., synchronization: typing.Any = ..., aggregation: typing.Any = ...) -> typing.Any: ...
glorot_normal_initializer = _glorot_normal_initializer
glorot_uniform_initializer = _glorot_uniform_initializer
def greater(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def greater_equal(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
half: _DType
def ifft(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def ifft2d(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def ifft3d(input: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def igamma(a: typing.Any, x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def igammac(a: typing.Any, x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
int16: _DType
int32: _DType
int64: _DType
int8: _DType
def inv(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def is_inf(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def is_nan(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def less(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def less_equal(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def lgamma(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
lin_space = _lin_space
def listdiff(x: typing.Any, y: typing.Any, index_dtype: typing.Any = ..., name: builtins.str | None = ...) -> typing.Any: ...
def log(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def log1p(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def logical_and(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def logical_not(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def logical_or(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def maximum(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def minimum(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
mod = _mod
def mul(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def multiply(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def neg(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def negative(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
newaxis: typing.Any
no_gradient = _no_gradient
def not_equal(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
ones_initializer = _ones_initializer
orthogonal_initializer = _orthogonal_initializer
def pack(values: typing.Any, axis: builtins.int = ..., name: builtins.str | None = ...) -> typing.Any: ...
def polygamma(a: typing.Any, x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def pow(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
print = _print
qint16: _DType
qint32: _DType
qint8: _DType
def quantize(input: typing.Any, min_range: typing.Any, max_range: typing.Any, T: typing.Any, mode: typing.Any = ..., round_mode: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
quint16: _DType
quint8: _DType
def random_normal(shape: typing.Any, mean: typing.Any = ..., stddev: typing.Any = ..., dtype: typing.Any = ..., seed: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
random_normal_initializer = _random_normal_initializer
random_uniform_initializer = _random_uniform_initializer
range = _range
def realdiv(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def reciprocal(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def reduce_all(input_tensor: typing.Any, axis: typing.Any = ..., keepdims: builtins.bool | None = ..., name: builtins.str | None = ..., reduction_indices: typing.Any = ..., keep_dims: builtins.bool | None = ...) -> typing.Any: ...
def reduce_any(input_tensor: typing.Any, axis: typing.Any = ..., keepdims: builtins.bool | None = ..., name: builtins.str | None = ..., reduction_indices: typing.Any = ..., keep_dims: builtins.bool | None = ...) -> typing.Any: ...
def reduce_logsumexp(input_tensor: typing.Any, axis: typing.Any = ..., keepdims: builtins.bool | None = ..., name: builtins.str | None = ..., reduction_indices: typing.Any = ..., keep_dims: builtins.bool | None = ...) -> typing.Any: ...
def reduce_max(input_tensor: typing.Any, axis: typing.Any = ..., keepdims: builtins.bool | None = ..., name: builtins.str | None = ..., reduction_indices: typing.Any = ..., keep_dims: builtins.bool | None = ...) -> typing.Any: ...
def reduce_mean(input_tensor: typing.Any, axis: typing.Any = ..., keepdims: builtins.bool | None = ..., name: builtins.str | None = ..., reduction_indices: typing.Any = ..., keep_dims: builtins.bool | None = ...) -> typing.Any: ...
def reduce_min(input_tensor: typing.Any, axis: typing.Any = ..., keepdims: builtins.bool | None = ..., name: builtins.str | None = ..., reduction_indices: typing.Any = ..., keep_dims: builtins.bool | None = ...) -> typing.Any: ...
def reduce_prod(input_tensor: typing.Any, axis: typing.Any = ..., keepdims: builtins.bool | None = ..., name: builtins.str | None = ..., reduction_indices: typing.Any = ..., keep_dims: builtins.bool | None = ...) -> typing.Any: ...
def reduce_sum(input_tensor: typing.Any, axis: typing.Any = ..., keepdims: builtins.bool | None = ..., name: builtins.str | None = ..., reduction_indices: typing.Any = ..., keep_dims: builtins.bool | None = ...) -> typing.Any: ...
resource: _DType
reverse_v2 = _reverse_v2
def rint(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def rsqrt(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def scatter_add(ref: typing.Any, indices: typing.Any, updates: typing.Any, use_locking: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def scatter_div(ref: typing.Any, indices: typing.Any, updates: typing.Any, use_locking: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def scatter_max(ref: typing.Any, indices: typing.Any, updates: typing.Any, use_locking: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def scatter_min(ref: typing.Any, indices: typing.Any, updates: typing.Any, use_locking: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def scatter_mul(ref: typing.Any, indices: typing.Any, updates: typing.Any, use_locking: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def scatter_nd_add(ref: typing.Any, indices: typing.Any, updates: typing.Any, use_locking: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def scatter_nd_sub(ref: typing.Any, indices: typing.Any, updates: typing.Any, use_locking: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def scatter_nd_update(ref: typing.Any, indices: typing.Any, updates: typing.Any, use_locking: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def scatter_sub(ref: typing.Any, indices: typing.Any, updates: typing.Any, use_locking: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def scatter_update(ref: typing.Any, indices: typing.Any, updates: typing.Any, use_locking: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def segment_max(data: typing.Any, segment_ids: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def segment_mean(data: typing.Any, segment_ids: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def segment_min(data: typing.Any, segment_ids: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def segment_prod(data: typing.Any, segment_ids: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def segment_sum(data: typing.Any, segment_ids: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def select(condition: typing.Any, x: typing.Any = ..., y: typing.Any = ..., name: builtins.str | None = ...) -> typing.Any: ...
def sigmoid(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def sin(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def sinh(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
slice = _slice
def sparse_matmul(a: typing.Any, b: typing.Any, transpose_a: typing.Any = ..., transpose_b: typing.Any = ..., a_is_sparse: typing.Any = ..., b_is_sparse: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def sparse_split(keyword_required: typing.Any = ..., sp_input: typing.Any = ..., num_split: builtins.int | None = ..., axis: builtins.int | None = ..., name: builtins.str | None = ..., split_dim: builtins.int | None = ...) -> typing.Any: ...
def sparse_to_dense(sparse_indices: typing.Any, output_shape: typing.Any, sparse_values: typing.Any, default_value: typing.Any = ..., validate_indices: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def split(value: typing.Any, num_or_size_splits: typing.Any, axis: typing.Any = ..., num: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def split_v(value: typing.Any, num_or_size_splits: typing.Any, axis: typing.Any = ..., num: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def sqrt(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def square(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
string: _DType
def sub(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def subtract(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def tan(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def tanh(x: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
tensor_scatter_nd_add = _tensor_scatter_nd_add
tensor_scatter_nd_sub = _tensor_scatter_nd_sub
tensor_scatter_nd_update = _tensor_scatter_nd_update
def to_bfloat16(x: typing.Any, name: builtins.str = ...) -> typing.Any: ...
def to_complex128(x: typing.Any, name: builtins.str = ...) -> typing.Any: ...
def to_complex64(x: typing.Any, name: builtins.str = ...) -> typing.Any: ...
def to_double(x: typing.Any, name: builtins.str = ...) -> typing.Any: ...
def to_float(x: typing.Any, name: builtins.str = ...) -> typing.Any: ...
def to_int32(x: typing.Any, name: builtins.str = ...) -> typing.Any: ...
def to_int64(x: typing.Any, name: builtins.str = ...) -> typing.Any: ...
def truncated_normal(shape: typing.Any, mean: typing.Any = ..., stddev: typing.Any = ..., dtype: typing.Any = ..., seed: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
truncated_normal_initializer = _truncated_normal_initializer
def truncatediv(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
def truncatemod(x: typing.Any, y: typing.Any, name: builtins.str | None = ...) -> typing.Any: ...
tuple = _tuple
uint16: _DType
uint32: _DType
uint64: _DType
uint8: _DType
uniform_unit_scaling_initializer = _uniform_unit_scaling_initializer
def unpack(value: typing.Any, num: builtins.int | None = ..., axis: builtins.int = ..., name: builtins.str | None = ...) -> typing.Any: ...
def unsorted_segment_max(data: typing.Any, segment_ids: typing.Any, num_segments: builtins.int, name: builtins.str | None = ...) -> typing.Any: ...
def unsorted_segment_min(data: typing.Any, segment_ids: typing.Any, num_segments: builtins.int, name: builtins.str | None = ...) -> typing.Any: ...
def unsorted_segment_prod(data: typing.Any, segment_ids: typing.Any, num_segments: builtins.int, name: builtins.str | None = ...) -> typing.Any: ...
def unsorted_segment_sum(data: typing.Any, segment_ids: typing.Any, num_segments: builtins.int, name: builtins.str | None = ...) -> typing.Any: ...
variance_scaling_initializer = _variance_scaling_initializer
variant: _DType
zeros_initializer = _zeros_initializer
