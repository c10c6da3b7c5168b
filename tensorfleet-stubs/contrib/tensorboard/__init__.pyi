# Written by tools/make_stubs.py.
from tensorfleet.contrib.tensorboard import plugins as plugins
