# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api.keras.applications import densenet as densenet
from tensorfleet.contrib.keras.api.keras.applications import imagenet_utils as imagenet_utils
from tensorfleet.contrib.keras.api.keras.applications import inception_resnet_v2 as inception_resnet_v2
from tensorfleet.contrib.keras.api.keras.applications import inception_v3 as inception_v3
from tensorfleet.contrib.keras.api.keras.applications import mobilenet as mobilenet
from tensorfleet.contrib.keras.api.keras.applications import mobilenet_v2 as mobilenet_v2
from tensorfleet.contrib.keras.api.keras.applications import nasnet as nasnet
from tensorfleet.contrib.keras.api.keras.applications import resnet as resnet
from tensorfleet.contrib.keras.api.keras.applications import resnet50 as resnet50
from tensorfleet.contrib.keras.api.keras.applications import resnet_v2 as resnet_v2
from tensorfleet.contrib.keras.api.keras.applications import vgg16 as vgg16
from tensorfleet.contrib.keras.api.keras.applications import vgg19 as vgg19
from tensorfleet.contrib.keras.api.keras.applications import xception as xception
import typing
def __getattr__(name: str) -> typing.Any: ...
