# Written by tools/make_stubs.py.
from tensorfleet.ops.control.user_ops import my_fact as my_fact
