# Written by tools/make_stubs.py.
from tensorfleet.session.config import get_experimental_options as get_experimental_options
from tensorfleet.session.config import get_jit as get_jit
from tensorfleet.session.config import set_experimental_options as set_experimental_options
from tensorfleet.session.config import set_jit as set_jit
