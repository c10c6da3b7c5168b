# Written by tools/make_stubs.py.
from tensorfleet.ops.random.stateless import stateless_uniform as _stateless_random_uniform
import builtins
import typing
def stateless_random_normal(shape: typing.Any, seed: typing.Any, mean: typing.Any = ..., stddev: typing.Any = ..., dtype: typing.Any = ..., name: builtins.str | None = ...) -> typing.Any: ...
stateless_random_uniform = _stateless_random_uniform
def __getattr__(name: str) -> typing.Any: ...
