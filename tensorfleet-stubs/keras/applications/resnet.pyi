# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tensorfleet_legacy.keras.applications.resnet import ResNet101 as ResNet101
from tensorfleet_legacy.keras.applications.resnet import ResNet152 as ResNet152
from tensorfleet_legacy.keras.applications.resnet import ResNet50 as ResNet50
import builtins
import typing
def preprocess_input(x: typing.Any, data_format: builtins.str | None = ..., **kwargs: typing.Any) -> typing.Any: ...
