# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from tensorfleet_legacy.keras.applications.nasnet import NASNetLarge as NASNetLarge
from tensorfleet_legacy.keras.applications.nasnet import NASNetMobile as NASNetMobile
import builtins
import typing
def preprocess_input(x: typing.Any, data_format: builtins.str | None = ..., **kwargs: typing.Any) -> typing.Any: ...
