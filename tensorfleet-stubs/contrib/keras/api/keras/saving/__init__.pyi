# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api.keras.saving import hdf5_format as hdf5_format
from tensorfleet.contrib.keras.api.keras.saving import model_config as model_config
from tensorfleet.contrib.keras.api.keras.saving import save as save
from tensorfleet.contrib.keras.api.keras.saving import saved_model as saved_model
from tensorfleet.contrib.keras.api.keras.saving import saved_model_experimental as saved_model_experimental
from tensorfleet.contrib.keras.api.keras.saving import saving_utils as saving_utils
import typing
def __getattr__(name: str) -> typing.Any: ...
