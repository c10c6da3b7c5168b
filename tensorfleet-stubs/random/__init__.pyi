# Written by tools/make_stubs.py.
from tensorfleet.graph.scopes import set_random_seed as set_random_seed
from tensorfleet.ops.nn.sampling import all_candidate_sampler as all_candidate_sampler
from tensorfleet.ops.nn.sampling import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from tensorfleet.ops.random.ops import categorical as categorical
from tensorfleet.ops.random.ops import get_seed as get_seed
from tensorfleet.ops.random.ops import multinomial as multinomial
from tensorfleet.ops.random.ops import random_gamma as _gamma
from tensorfleet.ops.random.ops import random_poisson as _poisson
from tensorfleet.ops.random.ops import random_shuffle as _shuffle
from tensorfleet.ops.random.ops import random_uniform as _uniform
from tensorfleet.ops.random.stateless import stateless_categorical as stateless_categorical
from tensorfleet.ops.random.stateless import stateless_multinomial as stateless_multinomial
from tensorfleet.ops.random.stateless import stateless_uniform as stateless_uniform
from tensorfleet.random import experimental as experimental
import builtins
import typing
gamma = _gamma
def learned_unigram_candidate_sampler(true_classes: typing.Any, num_true: builtins.int, num_sampled: builtins.int, unique: builtins.bool, range_max: builtins.int, seed: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def log_uniform_candidate_sampler(true_classes: typing.Any, num_true: builtins.int, num_sampled: builtins.int, unique: builtins.bool, range_max: builtins.int, seed: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
def normal(shape: typing.Any, mean: typing.Any = ..., stddev: typing.Any = ..., dtype: typing.Any = ..., seed: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
poisson = _poisson
shuffle = _shuffle
def stateless_normal(shape: typing.Any, seed: typing.Any, mean: typing.Any = ..., stddev: typing.Any = ..., dtype: typing.Any = ..., name: builtins.str | None = ...) -> typing.Any: ...
def stateless_truncated_normal(shape: typing.Any, seed: typing.Any, mean: typing.Any = ..., stddev: typing.Any = ..., dtype: typing.Any = ..., name: builtins.str | None = ...) -> typing.Any: ...
def truncated_normal(shape: typing.Any, mean: typing.Any = ..., stddev: typing.Any = ..., dtype: typing.Any = ..., seed: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
uniform = _uniform
def uniform_candidate_sampler(true_classes: typing.Any, num_true: builtins.int, num_sampled: builtins.int, unique: builtins.bool, range_max: builtins.int, seed: builtins.int | None = ..., name: builtins.str | None = ...) -> typing.Any: ...
