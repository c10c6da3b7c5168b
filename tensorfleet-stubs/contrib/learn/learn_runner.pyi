# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.learn.experiment import run as run
