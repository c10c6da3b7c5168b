# Written by tools/make_stubs.py.
from tensorfleet.examples import tutorials as tutorials
