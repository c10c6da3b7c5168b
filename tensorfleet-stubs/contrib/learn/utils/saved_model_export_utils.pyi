# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.learn.experiment import make_export_strategy as make_export_strategy
