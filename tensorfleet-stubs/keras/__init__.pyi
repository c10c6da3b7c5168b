# Written by tools/make_stubs.py.
from tensorfleet.keras import activations as activations
from tensorfleet.keras import applications as applications
from tensorfleet.keras import backend as backend
from tensorfleet.keras import callbacks as callbacks
from tensorfleet.keras import constraints as constraints
from tensorfleet.keras import datasets as datasets
from tensorfleet.keras import estimator as estimator
from tensorfleet.keras import experimental as experimental
from tensorfleet.keras import initializers as initializers
from tensorfleet.keras import layers as layers
from tensorfleet.keras import losses as losses
from tensorfleet.keras import metrics as metrics
from tensorfleet.keras import mixed_precision as mixed_precision
from tensorfleet.keras import models as models
from tensorfleet.keras import optimizers as optimizers
from tensorfleet.keras import preprocessing as preprocessing
from tensorfleet.keras import regularizers as regularizers
from tensorfleet.keras import utils as utils
from tensorfleet.keras import wrappers as wrappers
from tensorfleet_legacy.keras.engine.base_layer import Input as Input
from tensorfleet_legacy.keras.engine.network import Model as Model
from tensorfleet_legacy.keras.engine.network import Sequential as Sequential
import builtins
__version__: builtins.str
