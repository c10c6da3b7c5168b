# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.slim.nets.inception_v1 import inception_v1 as inception_v1
from tensorfleet_legacy.contrib.slim.nets.inception_v1 import inception_v1_arg_scope as inception_v1_arg_scope
from tensorfleet_legacy.contrib.slim.nets.inception_v1 import inception_v1_base as inception_v1_base
