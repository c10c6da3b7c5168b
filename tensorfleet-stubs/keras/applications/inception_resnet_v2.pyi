# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tensorfleet_legacy.keras.applications.inception_resnet_v2 import InceptionResNetV2 as InceptionResNetV2
import builtins
import typing
def preprocess_input(x: typing.Any, data_format: builtins.str | None = ..., **kwargs: typing.Any) -> typing.Any: ...
