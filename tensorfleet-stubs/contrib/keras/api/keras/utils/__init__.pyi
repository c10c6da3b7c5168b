# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api.keras.utils import conv_utils as conv_utils
from tensorfleet.contrib.keras.api.keras.utils import data_utils as data_utils
from tensorfleet.contrib.keras.api.keras.utils import generic_utils as generic_utils
from tensorfleet.contrib.keras.api.keras.utils import io_utils as io_utils
from tensorfleet.contrib.keras.api.keras.utils import layer_utils as layer_utils
from tensorfleet.contrib.keras.api.keras.utils import losses_utils as losses_utils
from tensorfleet.contrib.keras.api.keras.utils import metrics_utils as metrics_utils
from tensorfleet.contrib.keras.api.keras.utils import mode_keys as mode_keys
from tensorfleet.contrib.keras.api.keras.utils import multi_gpu_utils as multi_gpu_utils
from tensorfleet.contrib.keras.api.keras.utils import np_utils as np_utils
from tensorfleet.contrib.keras.api.keras.utils import tf_utils as tf_utils
from tensorfleet.contrib.keras.api.keras.utils import vis_utils as vis_utils
import typing
def __getattr__(name: str) -> typing.Any: ...
