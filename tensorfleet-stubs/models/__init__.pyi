# Written by tools/make_stubs.py.
from tensorfleet.models import rnn as rnn
