# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api.keras.layers import advanced_activations as advanced_activations
from tensorfleet.contrib.keras.api.keras.layers import convolutional as convolutional
from tensorfleet.contrib.keras.api.keras.layers import convolutional_recurrent as convolutional_recurrent
from tensorfleet.contrib.keras.api.keras.layers import core as core
from tensorfleet.contrib.keras.api.keras.layers import cudnn_recurrent as cudnn_recurrent
from tensorfleet.contrib.keras.api.keras.layers import dense_attention as dense_attention
from tensorfleet.contrib.keras.api.keras.layers import embeddings as embeddings
from tensorfleet.contrib.keras.api.keras.layers import kernelized as kernelized
from tensorfleet.contrib.keras.api.keras.layers import local as local
from tensorfleet.contrib.keras.api.keras.layers import merge as merge
from tensorfleet.contrib.keras.api.keras.layers import noise as noise
from tensorfleet.contrib.keras.api.keras.layers import normalization as normalization
from tensorfleet.contrib.keras.api.keras.layers import normalization_v2 as normalization_v2
from tensorfleet.contrib.keras.api.keras.layers import pooling as pooling
from tensorfleet.contrib.keras.api.keras.layers import recurrent as recurrent
from tensorfleet.contrib.keras.api.keras.layers import recurrent_v2 as recurrent_v2
from tensorfleet.contrib.keras.api.keras.layers import rnn_cell_wrapper_v2 as rnn_cell_wrapper_v2
from tensorfleet.contrib.keras.api.keras.layers import serialization as serialization
from tensorfleet.contrib.keras.api.keras.layers import wrappers as wrappers
import typing
def __getattr__(name: str) -> typing.Any: ...
