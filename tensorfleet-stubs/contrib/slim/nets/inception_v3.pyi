# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.slim.nets.inception_v3 import inception_v3 as inception_v3
from tensorfleet_legacy.contrib.slim.nets.inception_v3 import inception_v3_arg_scope as inception_v3_arg_scope
from tensorfleet_legacy.contrib.slim.nets.inception_v3 import inception_v3_base as inception_v3_base
