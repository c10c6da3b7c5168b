# Written by tools/make_stubs.py.
from tensorfleet import *
