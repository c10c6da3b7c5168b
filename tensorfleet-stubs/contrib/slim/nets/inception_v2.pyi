# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.slim.nets.inception_v2 import inception_v2 as inception_v2
from tensorfleet_legacy.contrib.slim.nets.inception_v2 import inception_v2_arg_scope as inception_v2_arg_scope
from tensorfleet_legacy.contrib.slim.nets.inception_v2 import inception_v2_base as inception_v2_base
