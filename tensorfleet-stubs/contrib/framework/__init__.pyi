# Written by tools/make_stubs.py.
from tensorfleet.api.train.checkpoint_ops import load_and_remap_matrix as load_and_remap_matrix
from tensorfleet.api.train.checkpoint_ops import load_and_remap_matrix_initializer as load_and_remap_matrix_initializer
from tensorfleet.api.train.checkpoint_ops import load_embedding_initializer as load_embedding_initializer
from tensorfleet.api.train.global_step import create_global_step as create_global_step
from tensorfleet.api.train.global_step import get_global_step as get_global_step
from tensorfleet.api.train.global_step import get_or_create_global_step as get_or_create_global_step
from tensorfleet.api.variables.orthogonal import ConvolutionDeltaOrthogonal as _convolutional_delta_orthogonal
from tensorfleet.api.variables.orthogonal import ConvolutionOrthogonal1D as _convolutional_orthogonal_1d
from tensorfleet.api.variables.orthogonal import ConvolutionOrthogonal2D as _convolutional_orthogonal_2d
from tensorfleet.api.variables.orthogonal import ConvolutionOrthogonal3D as _convolutional_orthogonal_3d
from tensorfleet.contrib.framework import nest as nest
from tensorfleet.contrib.framework import python as python
from tensorfleet.ops.array.queries import is_tensor as is_tensor
from tensorfleet.ops.bounded_specs import BoundedTensorSpec as BoundedTensorSpec
from tensorfleet.ops.control.cond import smart_case as smart_case
from tensorfleet.ops.control.cond import smart_cond as smart_cond
from tensorfleet.ops.control.cond import smart_constant_value as smart_constant_value
from tensorfleet_legacy.contrib.framework.arg_scope import add_arg_scope as add_arg_scope
from tensorfleet_legacy.contrib.framework.arg_scope import arg_scope as arg_scope
from tensorfleet_legacy.contrib.framework.arg_scope import arg_scoped_arguments as arg_scoped_arguments
from tensorfleet_legacy.contrib.framework.arg_scope import current_arg_scope as current_arg_scope
from tensorfleet_legacy.contrib.framework.arg_scope import has_arg_scope as has_arg_scope
from tensorfleet_legacy.contrib.framework.tensor_util import assert_scalar_int as assert_scalar_int
from tensorfleet_legacy.contrib.framework.tensor_util import reduce_sum_n as reduce_sum_n
from tensorfleet_legacy.contrib.framework.tensor_util import remove_squeezable_dimensions as remove_squeezable_dimensions
from tensorfleet_legacy.contrib.framework.tensor_util import with_same_shape as with_same_shape
from tensorfleet_legacy.contrib.framework.tensor_util import with_shape as with_shape
from tensorfleet_legacy.contrib.framework.variables import VariableDeviceChooser as VariableDeviceChooser
from tensorfleet_legacy.contrib.framework.variables import add_model_variable as add_model_variable
from tensorfleet_legacy.contrib.framework.variables import assert_global_step as assert_global_step
from tensorfleet_legacy.contrib.framework.variables import assert_or_get_global_step as assert_or_get_global_step
from tensorfleet_legacy.contrib.framework.variables import assign_from_checkpoint as assign_from_checkpoint
from tensorfleet_legacy.contrib.framework.variables import assign_from_checkpoint_fn as assign_from_checkpoint_fn
from tensorfleet_legacy.contrib.framework.variables import assign_from_values as assign_from_values
from tensorfleet_legacy.contrib.framework.variables import assign_from_values_fn as assign_from_values_fn
from tensorfleet_legacy.contrib.framework.variables import filter_variables as filter_variables
from tensorfleet_legacy.contrib.framework.variables import get_local_variables as get_local_variables
from tensorfleet_legacy.contrib.framework.variables import get_model_variables as get_model_variables
from tensorfleet_legacy.contrib.framework.variables import get_placeholders as get_placeholders
from tensorfleet_legacy.contrib.framework.variables import get_trainable_variables as get_trainable_variables
from tensorfleet_legacy.contrib.framework.variables import get_unique_variable as get_unique_variable
from tensorfleet_legacy.contrib.framework.variables import get_variable_full_name as get_variable_full_name
from tensorfleet_legacy.contrib.framework.variables import get_variables as get_variables
from tensorfleet_legacy.contrib.framework.variables import get_variables_by_name as get_variables_by_name
from tensorfleet_legacy.contrib.framework.variables import get_variables_by_suffix as get_variables_by_suffix
from tensorfleet_legacy.contrib.framework.variables import get_variables_to_restore as get_variables_to_restore
from tensorfleet_legacy.contrib.framework.variables import global_variable as global_variable
from tensorfleet_legacy.contrib.framework.variables import local_variable as local_variable
from tensorfleet_legacy.contrib.framework.variables import zero_initializer as zero_initializer
from tensorfleet_legacy.internals.framework.ops import get_graph_from_inputs as get_graph_from_inputs
from tensorfleet_legacy.internals.framework.ops import get_name_scope as get_name_scope
from tensorfleet_legacy.internals.util.deprecation import deprecated as deprecated
from tensorfleet_legacy.internals.util.deprecation import deprecated_arg_values as deprecated_arg_values
from tensorfleet_legacy.internals.util.deprecation import deprecated_args as deprecated_args
import builtins
import typing
convolutional_delta_orthogonal = _convolutional_delta_orthogonal
convolutional_orthogonal_1d = _convolutional_orthogonal_1d
convolutional_orthogonal_2d = _convolutional_orthogonal_2d
convolutional_orthogonal_3d = _convolutional_orthogonal_3d
def init_from_checkpoint(checkpoint_dir: typing.Any, assignment_map: typing.Any) -> typing.Any: ...
def list_variables(checkpoint_dir: typing.Any) -> typing.Any: ...
def load_checkpoint(filepattern: typing.Any) -> typing.Any: ...
def load_variable(checkpoint_dir: typing.Any, name: typing.Any) -> typing.Any: ...
def model_variable(name: builtins.str, shape: typing.Any = ..., dtype: typing.Any = ..., initializer: typing.Any = ..., regularizer: typing.Any = ..., trainable: builtins.bool = ..., collections: typing.Any = ..., caching_device: typing.Any = ..., device: typing.Any = ..., partitioner: typing.Any = ..., custom_getter: typing.Any = ..., use_resource: builtins.bool | None = ..., synchronization: typing.Any = ..., aggregation: typing.Any = ...) -> typing.Any: ...
def variable(name: builtins.str, shape: typing.Any = ..., dtype: typing.Any = ..., initializer: typing.Any = ..., regularizer: typing.Any = ..., trainable: builtins.bool = ..., collections: typing.Any = ..., caching_device: typing.Any = ..., device: typing.Any = ..., partitioner: typing.Any = ..., custom_getter: typing.Any = ..., use_resource: builtins.bool | None = ..., synchronization: typing.Any = ..., aggregation: typing.Any = ...) -> typing.Any: ...
def __getattr__(name: str) -> typing.Any: ...
