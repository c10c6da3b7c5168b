# Written by tools/make_stubs.py.
from tensorfleet.contrib.tensorboard.plugins import projector as projector
