# Written by tools/make_stubs.py.
from tensorfleet.contrib.memory_stats import python as python
from tensorfleet_legacy.contrib.copy_graph.copy_elements import BytesInUse as BytesInUse
from tensorfleet_legacy.contrib.copy_graph.copy_elements import BytesLimit as BytesLimit
from tensorfleet_legacy.contrib.copy_graph.copy_elements import MaxBytesInUse as MaxBytesInUse
