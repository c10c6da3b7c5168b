# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.activations import deserialize_regularizer as _deserialize
from tensorfleet_legacy.keras.activations import regularizer as _get
from tensorfleet_legacy.keras.activations import serialize_regularizer as _serialize
from tensorfleet_legacy.keras.regularizers import L1L2 as L1L2
from tensorfleet_legacy.keras.regularizers import Regularizer as Regularizer
from tensorfleet_legacy.keras.regularizers import l1 as l1
from tensorfleet_legacy.keras.regularizers import l1_l2 as l1_l2
from tensorfleet_legacy.keras.regularizers import l2 as l2
deserialize = _deserialize
get = _get
serialize = _serialize
