# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.activations import activation as _get
from tensorfleet_legacy.keras.activations import deserialize_activation as _deserialize
from tensorfleet_legacy.keras.activations import elu as elu
from tensorfleet_legacy.keras.activations import exponential as exponential
from tensorfleet_legacy.keras.activations import hard_sigmoid as hard_sigmoid
from tensorfleet_legacy.keras.activations import linear as linear
from tensorfleet_legacy.keras.activations import relu as relu
from tensorfleet_legacy.keras.activations import serialize_activation as _serialize
from tensorfleet_legacy.keras.activations import softmax as softmax
import typing
deserialize = _deserialize
get = _get
def selu(x: typing.Any) -> typing.Any: ...
serialize = _serialize
def sigmoid(x: typing.Any) -> typing.Any: ...
def softplus(x: typing.Any) -> typing.Any: ...
def softsign(x: typing.Any) -> typing.Any: ...
def tanh(x: typing.Any) -> typing.Any: ...
