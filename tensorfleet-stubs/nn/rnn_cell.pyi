# Written by tools/make_stubs.py.
from tensorfleet.api.layers.rnn_cells import BasicRNNCell as BasicRNNCell
from tensorfleet.api.layers.rnn_cells import GRUCell as GRUCell
from tensorfleet.api.layers.rnn_cells import LSTMStateTuple as LSTMStateTuple
from tensorfleet.api.layers.rnn_cells import RNNCell as RNNCell
from tensorfleet.api.layers.rnn_lstm import BasicLSTMCell as BasicLSTMCell
from tensorfleet.api.layers.rnn_lstm import LSTMCell as LSTMCell
from tensorfleet.api.layers.rnn_wrappers import DeviceWrapper as DeviceWrapper
from tensorfleet.api.layers.rnn_wrappers import DropoutWrapper as DropoutWrapper
from tensorfleet.api.layers.rnn_wrappers import MultiRNNCell as MultiRNNCell
from tensorfleet.api.layers.rnn_wrappers import ResidualWrapper as ResidualWrapper
