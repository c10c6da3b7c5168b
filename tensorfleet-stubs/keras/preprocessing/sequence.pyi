# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.preprocessing.sequence import TimeseriesGenerator as TimeseriesGenerator
from tensorfleet_legacy.keras.preprocessing.sequence import make_sampling_table as make_sampling_table
from tensorfleet_legacy.keras.preprocessing.sequence import pad_sequences as pad_sequences
from tensorfleet_legacy.keras.preprocessing.sequence import skipgrams as skipgrams
