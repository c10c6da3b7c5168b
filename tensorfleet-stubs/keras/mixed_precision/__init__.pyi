# Written by tools/make_stubs.py.
from tensorfleet.keras.mixed_precision import experimental as experimental
