# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tensorfleet_legacy.keras.applications.resnet import DenseNet121 as DenseNet121
from tensorfleet_legacy.keras.applications.resnet import DenseNet169 as DenseNet169
from tensorfleet_legacy.keras.applications.resnet import DenseNet201 as DenseNet201
import builtins
import typing
def preprocess_input(x: typing.Any, data_format: builtins.str | None = ..., **kwargs: typing.Any) -> typing.Any: ...
