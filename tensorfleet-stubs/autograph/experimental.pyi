# Written by tools/make_stubs.py.
from tensorfleet.api.autograph.public import Feature as Feature
from tensorfleet.api.autograph.public import do_not_convert as do_not_convert
from tensorfleet.api.autograph.public import set_loop_options as set_loop_options
