# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.callbacks import BaseLogger as BaseLogger
from tensorfleet_legacy.keras.callbacks import Callback as Callback
from tensorfleet_legacy.keras.callbacks import CallbackList as CallbackList
from tensorfleet_legacy.keras.callbacks import History as History
from tensorfleet_legacy.keras.callbacks import ProgbarLogger as ProgbarLogger
from tensorfleet_legacy.keras.callbacks_control import EarlyStopping as EarlyStopping
from tensorfleet_legacy.keras.callbacks_control import LambdaCallback as LambdaCallback
from tensorfleet_legacy.keras.callbacks_control import LearningRateScheduler as LearningRateScheduler
from tensorfleet_legacy.keras.callbacks_control import ReduceLROnPlateau as ReduceLROnPlateau
from tensorfleet_legacy.keras.callbacks_control import TerminateOnNaN as TerminateOnNaN
from tensorfleet_legacy.keras.callbacks_writing import CSVLogger as CSVLogger
from tensorfleet_legacy.keras.callbacks_writing import ModelCheckpoint as ModelCheckpoint
from tensorfleet_legacy.keras.callbacks_writing import RemoteMonitor as RemoteMonitor
from tensorfleet_legacy.keras.callbacks_writing import TensorBoard as TensorBoard
