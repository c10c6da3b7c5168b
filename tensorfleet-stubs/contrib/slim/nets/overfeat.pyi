# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.slim.nets.overfeat import overfeat_arg_scope as overfeat_arg_scope
import builtins
import typing
def overfeat(inputs: typing.Any, num_classes: builtins.int = ..., is_training: typing.Any = ..., dropout_keep_prob: builtins.float = ..., spatial_squeeze: builtins.bool = ..., scope: builtins.str = ...) -> typing.Any: ...
