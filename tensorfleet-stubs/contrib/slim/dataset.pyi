# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.slim.tfexample_decoder import Dataset as Dataset
