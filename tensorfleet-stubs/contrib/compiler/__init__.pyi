# Written by tools/make_stubs.py.
from tensorfleet.contrib.compiler import jit as jit
from tensorfleet.contrib.compiler import xla as xla
