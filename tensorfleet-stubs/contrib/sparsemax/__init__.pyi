# Written by tools/make_stubs.py.
from tensorfleet.contrib.sparsemax import python as python
from tensorfleet_legacy.contrib.sparsemax.sparsemax import sparsemax as sparsemax
from tensorfleet_legacy.contrib.sparsemax.sparsemax import sparsemax_loss as sparsemax_loss
