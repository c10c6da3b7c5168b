# Written by tools/make_stubs.py.
from tensorfleet.graph.scopes import name_scope as name_scope
from tensorfleet_legacy.keras.activations import elu as elu
from tensorfleet_legacy.keras.activations import hard_sigmoid as hard_sigmoid
from tensorfleet_legacy.keras.activations import relu as relu
from tensorfleet_legacy.keras.backend import batch_set_value as batch_set_value
from tensorfleet_legacy.keras.backend import clear_session as clear_session
from tensorfleet_legacy.keras.backend import dot as dot
from tensorfleet_legacy.keras.backend import epsilon as epsilon
from tensorfleet_legacy.keras.backend import floatx as floatx
from tensorfleet_legacy.keras.backend import get_session as get_session
from tensorfleet_legacy.keras.backend import get_uid as get_uid
from tensorfleet_legacy.keras.backend import get_value as get_value
from tensorfleet_legacy.keras.backend import image_data_format as image_data_format
from tensorfleet_legacy.keras.backend import int_shape as int_shape
from tensorfleet_legacy.keras.backend import is_keras_tensor as is_keras_tensor
from tensorfleet_legacy.keras.backend import learning_phase as learning_phase
from tensorfleet_legacy.keras.backend import learning_phase_scope as learning_phase_scope
from tensorfleet_legacy.keras.backend import manual_variable_initialization as manual_variable_initialization
from tensorfleet_legacy.keras.backend import placeholder as placeholder
from tensorfleet_legacy.keras.backend import reset_uids as reset_uids
from tensorfleet_legacy.keras.backend import set_epsilon as set_epsilon
from tensorfleet_legacy.keras.backend import set_floatx as set_floatx
from tensorfleet_legacy.keras.backend import set_image_data_format as set_image_data_format
from tensorfleet_legacy.keras.backend import set_learning_phase as set_learning_phase
from tensorfleet_legacy.keras.backend import set_session as set_session
from tensorfleet_legacy.keras.backend import set_value as set_value
from tensorfleet_legacy.keras.backend import variable as variable
from tensorfleet_legacy.keras.backend_arithmetic import all as all
from tensorfleet_legacy.keras.backend_arithmetic import any as any
from tensorfleet_legacy.keras.backend_arithmetic import binary_crossentropy as binary_crossentropy
from tensorfleet_legacy.keras.backend_arithmetic import categorical_crossentropy as categorical_crossentropy
from tensorfleet_legacy.keras.backend_arithmetic import map_fn as map_fn
from tensorfleet_legacy.keras.backend_arithmetic import mean as mean
from tensorfleet_legacy.keras.backend_arithmetic import one_hot as one_hot
from tensorfleet_legacy.keras.backend_arithmetic import reverse as reverse
from tensorfleet_legacy.keras.backend_arithmetic import sparse_categorical_crossentropy as sparse_categorical_crossentropy
from tensorfleet_legacy.keras.backend_arithmetic import sqrt as sqrt
from tensorfleet_legacy.keras.backend_arithmetic import std as std
from tensorfleet_legacy.keras.backend_arithmetic import stop_gradient as stop_gradient
from tensorfleet_legacy.keras.backend_arithmetic import tile as tile
from tensorfleet_legacy.keras.backend_arithmetic import var as var
from tensorfleet_legacy.keras.backend_convolution import backend as backend
from tensorfleet_legacy.keras.backend_convolution import batch_normalization as batch_normalization
from tensorfleet_legacy.keras.backend_convolution import conv1d as conv1d
from tensorfleet_legacy.keras.backend_convolution import conv2d as conv2d
from tensorfleet_legacy.keras.backend_convolution import conv2d_transpose as conv2d_transpose
from tensorfleet_legacy.keras.backend_convolution import conv3d as conv3d
from tensorfleet_legacy.keras.backend_convolution import ctc_batch_cost as ctc_batch_cost
from tensorfleet_legacy.keras.backend_convolution import ctc_decode as ctc_decode
from tensorfleet_legacy.keras.backend_convolution import ctc_label_dense_to_sparse as ctc_label_dense_to_sparse
from tensorfleet_legacy.keras.backend_convolution import depthwise_conv2d as depthwise_conv2d
from tensorfleet_legacy.keras.backend_convolution import eye as eye
from tensorfleet_legacy.keras.backend_convolution import foldl as foldl
from tensorfleet_legacy.keras.backend_convolution import foldr as foldr
from tensorfleet_legacy.keras.backend_convolution import in_top_k as in_top_k
from tensorfleet_legacy.keras.backend_convolution import is_sparse as is_sparse
from tensorfleet_legacy.keras.backend_convolution import moving_average_update as moving_average_update
from tensorfleet_legacy.keras.backend_convolution import normalize_batch_in_training as normalize_batch_in_training
from tensorfleet_legacy.keras.backend_convolution import pool2d as pool2d
from tensorfleet_legacy.keras.backend_convolution import pool3d as pool3d
from tensorfleet_legacy.keras.backend_convolution import random_binomial as random_binomial
from tensorfleet_legacy.keras.backend_convolution import random_normal_variable as random_normal_variable
from tensorfleet_legacy.keras.backend_convolution import random_uniform_variable as random_uniform_variable
from tensorfleet_legacy.keras.backend_convolution import repeat as repeat
from tensorfleet_legacy.keras.backend_convolution import repeat_elements as repeat_elements
from tensorfleet_legacy.keras.backend_convolution import resize_images as resize_images
from tensorfleet_legacy.keras.backend_convolution import resize_volumes as resize_volumes
from tensorfleet_legacy.keras.backend_convolution import separable_conv2d as separable_conv2d
from tensorfleet_legacy.keras.backend_convolution import spatial_2d_padding as spatial_2d_padding
from tensorfleet_legacy.keras.backend_convolution import spatial_3d_padding as spatial_3d_padding
from tensorfleet_legacy.keras.backend_convolution import temporal_padding as temporal_padding
from tensorfleet_legacy.keras.backend_convolution import to_dense as to_dense
from tensorfleet_legacy.keras.backend_function import function as function
from tensorfleet_legacy.keras.backend_rnn import rnn as rnn
from tensorfleet_legacy.keras.backend_tensors import arange as arange
from tensorfleet_legacy.keras.backend_tensors import batch_dot as batch_dot
from tensorfleet_legacy.keras.backend_tensors import batch_flatten as batch_flatten
from tensorfleet_legacy.keras.backend_tensors import batch_get_value as batch_get_value
from tensorfleet_legacy.keras.backend_tensors import bias_add as bias_add
from tensorfleet_legacy.keras.backend_tensors import cast_to_floatx as cast_to_floatx
from tensorfleet_legacy.keras.backend_tensors import concatenate as concatenate
from tensorfleet_legacy.keras.backend_tensors import constant as constant
from tensorfleet_legacy.keras.backend_tensors import count_params as count_params
from tensorfleet_legacy.keras.backend_tensors import dropout as dropout
from tensorfleet_legacy.keras.backend_tensors import dtype as dtype
from tensorfleet_legacy.keras.backend_tensors import eval as eval
from tensorfleet_legacy.keras.backend_tensors import flatten as flatten
from tensorfleet_legacy.keras.backend_tensors import gradients as gradients
from tensorfleet_legacy.keras.backend_tensors import in_test_phase as in_test_phase
from tensorfleet_legacy.keras.backend_tensors import in_train_phase as in_train_phase
from tensorfleet_legacy.keras.backend_tensors import ndim as ndim
from tensorfleet_legacy.keras.backend_tensors import ones as ones
from tensorfleet_legacy.keras.backend_tensors import print_tensor as print_tensor
from tensorfleet_legacy.keras.backend_tensors import random_normal as random_normal
from tensorfleet_legacy.keras.backend_tensors import random_uniform as random_uniform
from tensorfleet_legacy.keras.backend_tensors import squeeze as squeeze
from tensorfleet_legacy.keras.backend_tensors import switch as switch
from tensorfleet_legacy.keras.backend_tensors import truncated_normal as truncated_normal
from tensorfleet_legacy.keras.backend_tensors import update as update
from tensorfleet_legacy.keras.backend_tensors import update_add as update_add
from tensorfleet_legacy.keras.backend_tensors import update_sub as update_sub
from tensorfleet_legacy.keras.backend_tensors import zeros as zeros
from tensorfleet_legacy.keras.layers.local import local_conv1d as local_conv1d
from tensorfleet_legacy.keras.layers.local import local_conv2d as local_conv2d
import typing
def abs(x: typing.Any) -> typing.Any: ...
def argmax(x: typing.Any, axis: typing.Any = ...) -> typing.Any: ...
def argmin(x: typing.Any, axis: typing.Any = ...) -> typing.Any: ...
def cast(x: typing.Any, dtype: typing.Any) -> typing.Any: ...
def clip(x: typing.Any, min_value: typing.Any, max_value: typing.Any) -> typing.Any: ...
def cos(x: typing.Any) -> typing.Any: ...
def cumprod(x: typing.Any, axis: typing.Any = ...) -> typing.Any: ...
def cumsum(x: typing.Any, axis: typing.Any = ...) -> typing.Any: ...
def equal(x: typing.Any, y: typing.Any) -> typing.Any: ...
def exp(x: typing.Any) -> typing.Any: ...
def expand_dims(x: typing.Any, axis: typing.Any = ...) -> typing.Any: ...
def gather(reference: typing.Any, indices: typing.Any) -> typing.Any: ...
def greater(x: typing.Any, y: typing.Any) -> typing.Any: ...
def greater_equal(x: typing.Any, y: typing.Any) -> typing.Any: ...
def identity(x: typing.Any, name: typing.Any = ...) -> typing.Any: ...
def l2_normalize(x: typing.Any, axis: typing.Any = ...) -> typing.Any: ...
def less(x: typing.Any, y: typing.Any) -> typing.Any: ...
def less_equal(x: typing.Any, y: typing.Any) -> typing.Any: ...
def log(x: typing.Any) -> typing.Any: ...
def logsumexp(x: typing.Any, axis: typing.Any = ..., keepdims: typing.Any = ...) -> typing.Any: ...
def max(x: typing.Any, axis: typing.Any = ..., keepdims: typing.Any = ...) -> typing.Any: ...
def maximum(x: typing.Any, y: typing.Any) -> typing.Any: ...
def min(x: typing.Any, axis: typing.Any = ..., keepdims: typing.Any = ...) -> typing.Any: ...
def minimum(x: typing.Any, y: typing.Any) -> typing.Any: ...
def not_equal(x: typing.Any, y: typing.Any) -> typing.Any: ...
def ones_like(x: typing.Any, dtype: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def permute_dimensions(x: typing.Any, pattern: typing.Any) -> typing.Any: ...
def pow(x: typing.Any, a: typing.Any) -> typing.Any: ...
def prod(x: typing.Any, axis: typing.Any = ..., keepdims: typing.Any = ...) -> typing.Any: ...
def reshape(x: typing.Any, shape: typing.Any) -> typing.Any: ...
def round(x: typing.Any) -> typing.Any: ...
def shape(x: typing.Any) -> typing.Any: ...
def sigmoid(x: typing.Any) -> typing.Any: ...
def sign(x: typing.Any) -> typing.Any: ...
def sin(x: typing.Any) -> typing.Any: ...
def softmax(x: typing.Any, axis: typing.Any = ...) -> typing.Any: ...
def softplus(x: typing.Any) -> typing.Any: ...
def softsign(x: typing.Any) -> typing.Any: ...
def square(x: typing.Any) -> typing.Any: ...
def stack(x: typing.Any, axis: typing.Any = ...) -> typing.Any: ...
def sum(x: typing.Any, axis: typing.Any = ..., keepdims: typing.Any = ...) -> typing.Any: ...
def tanh(x: typing.Any) -> typing.Any: ...
def transpose(x: typing.Any) -> typing.Any: ...
def zeros_like(x: typing.Any, dtype: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
