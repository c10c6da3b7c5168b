# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.datasets.imdb import cifar100 as _load_data
load_data = _load_data
