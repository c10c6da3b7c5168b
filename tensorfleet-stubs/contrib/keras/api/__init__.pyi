# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api import keras as keras
