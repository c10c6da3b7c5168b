# Written by tools/make_stubs.py.
from tensorfleet.models.rnn.ptb import reader as reader
