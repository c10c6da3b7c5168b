# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.slim.learning import analyze_vars as analyze_vars
