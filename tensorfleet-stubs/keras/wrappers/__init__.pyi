# Written by tools/make_stubs.py.
from tensorfleet.keras.wrappers import scikit_learn as scikit_learn
