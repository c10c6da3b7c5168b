# Written by tools/make_stubs.py.
from tensorfleet.contrib.cudnn_rnn import python as python
from tensorfleet_legacy.contrib.cudnn_rnn.cudnn_rnn import CudnnCompatibleGRUCell as CudnnCompatibleGRUCell
from tensorfleet_legacy.contrib.cudnn_rnn.cudnn_rnn import CudnnCompatibleLSTMCell as CudnnCompatibleLSTMCell
from tensorfleet_legacy.contrib.cudnn_rnn.cudnn_rnn import CudnnGRU as CudnnGRU
from tensorfleet_legacy.contrib.cudnn_rnn.cudnn_rnn import CudnnLSTM as CudnnLSTM
from tensorfleet_legacy.contrib.cudnn_rnn.cudnn_rnn import CudnnRNNRelu as CudnnRNNRelu
from tensorfleet_legacy.contrib.cudnn_rnn.cudnn_rnn import CudnnRNNTanh as CudnnRNNTanh
