# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.engine.network import Model as Model
from tensorfleet_legacy.keras.engine.network import Sequential as Sequential
from tensorfleet_legacy.keras.saving.hdf5_format import load_model as load_model
from tensorfleet_legacy.keras.saving.hdf5_format import save_model as save_model
from tensorfleet_legacy.keras.saving.model_config import clone_model as clone_model
from tensorfleet_legacy.keras.saving.model_config import model_from_config as model_from_config
from tensorfleet_legacy.keras.saving.model_config import model_from_json as model_from_json
from tensorfleet_legacy.keras.saving.model_config import model_from_yaml as model_from_yaml
