# Written by tools/make_stubs.py.
from tensorfleet.models.rnn import ptb as ptb
from tensorfleet.models.rnn import rnn as rnn
from tensorfleet.models.rnn import rnn_cell as rnn_cell
from tensorfleet.models.rnn import seq2seq as seq2seq
