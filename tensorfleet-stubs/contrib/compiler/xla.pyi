# Written by tools/make_stubs.py.
from tensorfleet_legacy.internals.eager.context import compile as compile
