# Written by tools/make_stubs.py.
from tensorfleet_legacy.tutorials.input_data import load_data as load_data
