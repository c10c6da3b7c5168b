# Written by tools/make_stubs.py.
from tensorfleet_legacy.internals.eager.context import experimental_jit_scope as experimental_jit_scope
