# Written by tools/make_stubs.py.
from tensorfleet.api.variables.initializers import Constant as _constant
from tensorfleet.api.variables.initializers import GlorotNormal as _glorot_normal
from tensorfleet.api.variables.initializers import GlorotUniform as _glorot_uniform
from tensorfleet.api.variables.initializers import Identity as _identity
from tensorfleet.api.variables.initializers import Ones as _ones
from tensorfleet.api.variables.initializers import Orthogonal as _orthogonal
from tensorfleet.api.variables.initializers import RandomNormal as _random_normal
from tensorfleet.api.variables.initializers import RandomUniform as _random_uniform
from tensorfleet.api.variables.initializers import TruncatedNormal as _truncated_normal
from tensorfleet.api.variables.initializers import UniformUnitScaling as _uniform_unit_scaling
from tensorfleet.api.variables.initializers import VarianceScaling as _variance_scaling
from tensorfleet.api.variables.initializers import Zeros as _zeros
from tensorfleet.api.variables.initializers import he_normal as he_normal
from tensorfleet.api.variables.initializers import he_uniform as he_uniform
from tensorfleet.api.variables.initializers import lecun_normal as lecun_normal
from tensorfleet.api.variables.initializers import lecun_uniform as lecun_uniform
from tensorfleet.api.variables.lists import global_variables_initializer as _global_variables
from tensorfleet.api.variables.lists import local_variables_initializer as _local_variables
from tensorfleet.api.variables.lists import variables_initializer as _variables
from tensorfleet.ops.state.lookup import tables_initializer as tables_initializer
constant = _constant
global_variables = _global_variables
glorot_normal = _glorot_normal
glorot_uniform = _glorot_uniform
identity = _identity
local_variables = _local_variables
ones = _ones
orthogonal = _orthogonal
random_normal = _random_normal
random_uniform = _random_uniform
truncated_normal = _truncated_normal
uniform_unit_scaling = _uniform_unit_scaling
variables = _variables
variance_scaling = _variance_scaling
zeros = _zeros
