# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api.keras.engine import base_layer as base_layer
from tensorfleet.contrib.keras.api.keras.engine import base_layer_utils as base_layer_utils
from tensorfleet.contrib.keras.api.keras.engine import input_layer as input_layer
from tensorfleet.contrib.keras.api.keras.engine import input_spec as input_spec
from tensorfleet.contrib.keras.api.keras.engine import network as network
from tensorfleet.contrib.keras.api.keras.engine import node as node
from tensorfleet.contrib.keras.api.keras.engine import saving as saving
from tensorfleet.contrib.keras.api.keras.engine import sequential as sequential
from tensorfleet.contrib.keras.api.keras.engine import topology as topology
from tensorfleet.contrib.keras.api.keras.engine import training as training
from tensorfleet.contrib.keras.api.keras.engine import training_arrays as training_arrays
from tensorfleet.contrib.keras.api.keras.engine import training_distributed as training_distributed
from tensorfleet.contrib.keras.api.keras.engine import training_eager as training_eager
from tensorfleet.contrib.keras.api.keras.engine import training_generator as training_generator
from tensorfleet.contrib.keras.api.keras.engine import training_utils as training_utils
import typing
def __getattr__(name: str) -> typing.Any: ...
