# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api.keras import activations as activations
from tensorfleet.contrib.keras.api.keras import applications as applications
from tensorfleet.contrib.keras.api.keras import backend as backend
from tensorfleet.contrib.keras.api.keras import backend_config as backend_config
from tensorfleet.contrib.keras.api.keras import callbacks as callbacks
from tensorfleet.contrib.keras.api.keras import callbacks_v1 as callbacks_v1
from tensorfleet.contrib.keras.api.keras import constraints as constraints
from tensorfleet.contrib.keras.api.keras import datasets as datasets
from tensorfleet.contrib.keras.api.keras import engine as engine
from tensorfleet.contrib.keras.api.keras import estimator as estimator
from tensorfleet.contrib.keras.api.keras import experimental as experimental
from tensorfleet.contrib.keras.api.keras import initializers as initializers
from tensorfleet.contrib.keras.api.keras import layers as layers
from tensorfleet.contrib.keras.api.keras import losses as losses
from tensorfleet.contrib.keras.api.keras import metrics as metrics
from tensorfleet.contrib.keras.api.keras import models as models
from tensorfleet.contrib.keras.api.keras import optimizer_v2 as optimizer_v2
from tensorfleet.contrib.keras.api.keras import optimizers as optimizers
from tensorfleet.contrib.keras.api.keras import premade as premade
from tensorfleet.contrib.keras.api.keras import preprocessing as preprocessing
from tensorfleet.contrib.keras.api.keras import regularizers as regularizers
from tensorfleet.contrib.keras.api.keras import saving as saving
from tensorfleet.contrib.keras.api.keras import utils as utils
from tensorfleet.contrib.keras.api.keras import wrappers as wrappers
import typing
def __getattr__(name: str) -> typing.Any: ...
