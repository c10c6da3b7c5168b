# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.slim.learning import prefetch_queue as prefetch_queue
