# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.activations import constraint as _get
from tensorfleet_legacy.keras.activations import deserialize_constraint as _deserialize
from tensorfleet_legacy.keras.activations import serialize_constraint as _serialize
from tensorfleet_legacy.keras.regularizers import Constraint as Constraint
from tensorfleet_legacy.keras.regularizers import MaxNorm as MaxNorm
from tensorfleet_legacy.keras.regularizers import MaxNorm as _max_norm
from tensorfleet_legacy.keras.regularizers import MinMaxNorm as MinMaxNorm
from tensorfleet_legacy.keras.regularizers import MinMaxNorm as _min_max_norm
from tensorfleet_legacy.keras.regularizers import NonNeg as NonNeg
from tensorfleet_legacy.keras.regularizers import NonNeg as _non_neg
from tensorfleet_legacy.keras.regularizers import RadialConstraint as RadialConstraint
from tensorfleet_legacy.keras.regularizers import RadialConstraint as _radial_constraint
from tensorfleet_legacy.keras.regularizers import UnitNorm as UnitNorm
from tensorfleet_legacy.keras.regularizers import UnitNorm as _unit_norm
deserialize = _deserialize
get = _get
max_norm = _max_norm
min_max_norm = _min_max_norm
non_neg = _non_neg
radial_constraint = _radial_constraint
serialize = _serialize
unit_norm = _unit_norm
