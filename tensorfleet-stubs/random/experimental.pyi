# Written by tools/make_stubs.py.
from tensorfleet.api.variables.generators import Generator as Generator
from tensorfleet.api.variables.generators import create_rng_state as create_rng_state
from tensorfleet.api.variables.generators import get_global_generator as get_global_generator
from tensorfleet.api.variables.generators import set_global_generator as set_global_generator
