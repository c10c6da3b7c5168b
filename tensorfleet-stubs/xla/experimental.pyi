# Written by tools/make_stubs.py.
from tensorfleet_legacy.internals.eager.context import compile as compile
from tensorfleet_legacy.internals.eager.context import experimental_jit_scope as _jit_scope
jit_scope = _jit_scope
