# Written by tools/make_stubs.py.
from tensorfleet.xla import experimental as experimental
