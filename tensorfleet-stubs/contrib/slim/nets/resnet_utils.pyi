# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.slim.nets.resnet_utils import Block as Block
from tensorfleet_legacy.contrib.slim.nets.resnet_utils import conv2d_same as conv2d_same
from tensorfleet_legacy.contrib.slim.nets.resnet_utils import resnet_arg_scope as resnet_arg_scope
from tensorfleet_legacy.contrib.slim.nets.resnet_utils import subsample as subsample
import builtins
import typing
def stack_blocks_dense(net: typing.Any, blocks: typing.Any, output_stride: builtins.int | None = ..., outputs_collections: typing.Any = ...) -> typing.Any: ...
