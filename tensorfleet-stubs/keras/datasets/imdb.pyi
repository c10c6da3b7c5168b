# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.datasets.imdb import imdb as _load_data
from tensorfleet_legacy.keras.datasets.imdb import imdb_word_index as _get_word_index
get_word_index = _get_word_index
load_data = _load_data
