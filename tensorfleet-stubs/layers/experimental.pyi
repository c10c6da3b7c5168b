# Written by tools/make_stubs.py.
from tensorfleet.api.layers.helpers import keras_style_scope as keras_style_scope
from tensorfleet.api.layers.helpers import set_keras_style as set_keras_style
