# Written by tools/make_stubs.py.
from tensorfleet.api.layers.rnn import _batch_size as _best_effort_input_batch_size
from tensorfleet.api.layers.rnn import dynamic_rnn as dynamic_rnn
from tensorfleet.api.layers.rnn import transpose_batch_time as transpose_batch_time
from tensorfleet.api.layers.rnn_cells import BasicRNNCell as BasicRNNCell
from tensorfleet.api.layers.rnn_cells import GRUCell as GRUCell
from tensorfleet.api.layers.rnn_cells import LSTMStateTuple as LSTMStateTuple
from tensorfleet.api.layers.rnn_cells import LayerCell as _LayerRNNCell
from tensorfleet.api.layers.rnn_cells import RNNCell as RNNCell
from tensorfleet.api.layers.rnn_lstm import BasicLSTMCell as BasicLSTMCell
from tensorfleet.api.layers.rnn_lstm import LSTMCell as LSTMCell
from tensorfleet.api.layers.rnn_static import static_bidirectional_rnn as static_bidirectional_rnn
from tensorfleet.api.layers.rnn_static import static_rnn as static_rnn
from tensorfleet.api.layers.rnn_static import static_state_saving_rnn as static_state_saving_rnn
from tensorfleet.api.layers.rnn_wrappers import DeviceWrapper as DeviceWrapper
from tensorfleet.api.layers.rnn_wrappers import DropoutWrapper as DropoutWrapper
from tensorfleet.api.layers.rnn_wrappers import MultiRNNCell as MultiRNNCell
from tensorfleet.api.layers.rnn_wrappers import ResidualWrapper as ResidualWrapper
from tensorfleet.contrib.rnn import python as python
from tensorfleet_legacy.contrib.rnn.lstm_ops import EmbeddingWrapper as EmbeddingWrapper
from tensorfleet_legacy.contrib.rnn.lstm_ops import GRUBlockCell as GRUBlockCell
from tensorfleet_legacy.contrib.rnn.lstm_ops import GRUBlockCellV2 as GRUBlockCellV2
from tensorfleet_legacy.contrib.rnn.lstm_ops import InputProjectionWrapper as InputProjectionWrapper
from tensorfleet_legacy.contrib.rnn.lstm_ops import LSTMBlockCell as LSTMBlockCell
from tensorfleet_legacy.contrib.rnn.lstm_ops import LSTMBlockFusedCell as LSTMBlockFusedCell
from tensorfleet_legacy.contrib.rnn.lstm_ops import LSTMBlockWrapper as LSTMBlockWrapper
from tensorfleet_legacy.contrib.rnn.lstm_ops import OutputProjectionWrapper as OutputProjectionWrapper
from tensorfleet_legacy.contrib.rnn.rnn_cell import Conv1DLSTMCell as Conv1DLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell import Conv2DLSTMCell as Conv2DLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell import Conv3DLSTMCell as Conv3DLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell import ConvLSTMCell as ConvLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell import FusedRNNCell as FusedRNNCell
from tensorfleet_legacy.contrib.rnn.rnn_cell import FusedRNNCellAdaptor as FusedRNNCellAdaptor
from tensorfleet_legacy.contrib.rnn.rnn_cell import IntersectionRNNCell as IntersectionRNNCell
from tensorfleet_legacy.contrib.rnn.rnn_cell import NASCell as NASCell
from tensorfleet_legacy.contrib.rnn.rnn_cell import SRUCell as SRUCell
from tensorfleet_legacy.contrib.rnn.rnn_cell import TimeReversedFusedRNN as TimeReversedFusedRNN
from tensorfleet_legacy.contrib.rnn.rnn_cell import UGRNNCell as UGRNNCell
from tensorfleet_legacy.contrib.rnn.rnn_cell import stack_bidirectional_dynamic_rnn as stack_bidirectional_dynamic_rnn
from tensorfleet_legacy.contrib.rnn.rnn_cell import stack_bidirectional_rnn as stack_bidirectional_rnn
from tensorfleet_legacy.contrib.rnn.rnn_cell_grid import BidirectionalGridLSTMCell as BidirectionalGridLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_grid import GridLSTMCell as GridLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_grid import TimeFreqLSTMCell as TimeFreqLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_independent import IndRNNCell as IndRNNCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_independent import IndyGRUCell as IndyGRUCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_independent import IndyLSTMCell as IndyLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_layer_norm import LayerNormBasicLSTMCell as LayerNormBasicLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_lstm import CoupledInputForgetGateLSTMCell as CoupledInputForgetGateLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_lstm import GLSTMCell as GLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_lstm import LayerNormLSTMCell as LayerNormLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_lstm import PhasedLSTMCell as PhasedLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_lstm import WeightNormLSTMCell as WeightNormLSTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_memory import CFNCell as CFNCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_memory import MinimalRNNCell as MinimalRNNCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_memory import NTMCell as NTMCell
from tensorfleet_legacy.contrib.rnn.rnn_cell_wrappers import AttentionCellWrapper as AttentionCellWrapper
from tensorfleet_legacy.contrib.rnn.rnn_cell_wrappers import CompiledWrapper as CompiledWrapper
from tensorfleet_legacy.contrib.rnn.rnn_cell_wrappers import HighwayWrapper as HighwayWrapper
import typing
LayerRNNCell = _LayerRNNCell
class NTMControllerState(typing.Any):
    def __init__(self, /, *args: typing.Any, **kwargs: typing.Any) -> None: ...
best_effort_input_batch_size = _best_effort_input_batch_size
def __getattr__(name: str) -> typing.Any: ...
