# Written by tools/make_stubs.py.
from tensorfleet.api.variables.initializers import Constant as Constant
from tensorfleet.api.variables.initializers import Constant as _constant
from tensorfleet.api.variables.initializers import GlorotNormal as _glorot_normal
from tensorfleet.api.variables.initializers import GlorotUniform as _glorot_uniform
from tensorfleet.api.variables.initializers import Identity as Identity
from tensorfleet.api.variables.initializers import Identity as _identity
from tensorfleet.api.variables.initializers import Initializer as Initializer
from tensorfleet.api.variables.initializers import Ones as Ones
from tensorfleet.api.variables.initializers import Ones as _ones
from tensorfleet.api.variables.initializers import Orthogonal as Orthogonal
from tensorfleet.api.variables.initializers import Orthogonal as _orthogonal
from tensorfleet.api.variables.initializers import VarianceScaling as VarianceScaling
from tensorfleet.api.variables.initializers import VarianceScaling as _variance_scaling
from tensorfleet.api.variables.initializers import Zeros as Zeros
from tensorfleet.api.variables.initializers import Zeros as _zeros
from tensorfleet.api.variables.initializers import he_normal as he_normal
from tensorfleet.api.variables.initializers import he_uniform as he_uniform
from tensorfleet.api.variables.initializers import lecun_normal as lecun_normal
from tensorfleet.api.variables.initializers import lecun_uniform as lecun_uniform
from tensorfleet_legacy.keras.activations import RandomNormal as _RandomNormal
from tensorfleet_legacy.keras.activations import RandomNormal as _normal
from tensorfleet_legacy.keras.activations import RandomNormal as _random_normal
from tensorfleet_legacy.keras.activations import RandomUniform as _RandomUniform
from tensorfleet_legacy.keras.activations import RandomUniform as _random_uniform
from tensorfleet_legacy.keras.activations import RandomUniform as _uniform
from tensorfleet_legacy.keras.activations import TruncatedNormal as _TruncatedNormal
from tensorfleet_legacy.keras.activations import TruncatedNormal as _truncated_normal
from tensorfleet_legacy.keras.activations import deserialize_initializer as _deserialize
from tensorfleet_legacy.keras.activations import initializer as _get
from tensorfleet_legacy.keras.activations import serialize_initializer as _serialize
import builtins
import typing
class RandomNormal(_RandomNormal):
    def __init__(self, mean: typing.Any = ..., stddev: typing.Any = ..., seed: builtins.int | None = ..., dtype: typing.Any = ...) -> None: ...
class RandomUniform(_RandomUniform):
    def __init__(self, minval: typing.Any = ..., maxval: typing.Any = ..., seed: builtins.int | None = ..., dtype: typing.Any = ...) -> None: ...
class TruncatedNormal(_TruncatedNormal):
    def __init__(self, mean: typing.Any = ..., stddev: typing.Any = ..., seed: builtins.int | None = ..., dtype: typing.Any = ...) -> None: ...
constant = _constant
deserialize = _deserialize
get = _get
glorot_normal = _glorot_normal
glorot_uniform = _glorot_uniform
identity = _identity
class normal(_normal):
    def __init__(self, mean: typing.Any = ..., stddev: typing.Any = ..., seed: builtins.int | None = ..., dtype: typing.Any = ...) -> None: ...
ones = _ones
orthogonal = _orthogonal
class random_normal(_random_normal):
    def __init__(self, mean: typing.Any = ..., stddev: typing.Any = ..., seed: builtins.int | None = ..., dtype: typing.Any = ...) -> None: ...
class random_uniform(_random_uniform):
    def __init__(self, minval: typing.Any = ..., maxval: typing.Any = ..., seed: builtins.int | None = ..., dtype: typing.Any = ...) -> None: ...
serialize = _serialize
class truncated_normal(_truncated_normal):
    def __init__(self, mean: typing.Any = ..., stddev: typing.Any = ..., seed: builtins.int | None = ..., dtype: typing.Any = ...) -> None: ...
class uniform(_uniform):
    def __init__(self, minval: typing.Any = ..., maxval: typing.Any = ..., seed: builtins.int | None = ..., dtype: typing.Any = ...) -> None: ...
variance_scaling = _variance_scaling
zeros = _zeros
