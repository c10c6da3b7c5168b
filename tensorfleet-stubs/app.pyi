# Written by tools/make_stubs.py.
from tensorfleet.base.platform import flags as flags
from tensorfleet.base.platform.app import run as run
