# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tensorfleet_legacy.keras.applications.resnet import ResNet101V2 as ResNet101V2
from tensorfleet_legacy.keras.applications.resnet import ResNet152V2 as ResNet152V2
from tensorfleet_legacy.keras.applications.resnet import ResNet50V2 as ResNet50V2
import builtins
import typing
def preprocess_input(x: typing.Any, data_format: builtins.str | None = ..., **kwargs: typing.Any) -> typing.Any: ...
