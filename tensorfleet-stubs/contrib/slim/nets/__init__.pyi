# Written by tools/make_stubs.py.
from tensorfleet.contrib.slim.nets import alexnet as alexnet
from tensorfleet.contrib.slim.nets import inception as inception
from tensorfleet.contrib.slim.nets import inception_v1 as inception_v1
from tensorfleet.contrib.slim.nets import inception_v2 as inception_v2
from tensorfleet.contrib.slim.nets import inception_v3 as inception_v3
from tensorfleet.contrib.slim.nets import overfeat as overfeat
from tensorfleet.contrib.slim.nets import resnet_utils as resnet_utils
from tensorfleet.contrib.slim.nets import resnet_v1 as resnet_v1
from tensorfleet.contrib.slim.nets import resnet_v2 as resnet_v2
from tensorfleet.contrib.slim.nets import vgg as vgg
