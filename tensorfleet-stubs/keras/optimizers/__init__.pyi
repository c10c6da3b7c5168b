# Written by tools/make_stubs.py.
from tensorfleet.keras.optimizers import schedules as schedules
from tensorfleet_legacy.keras.optimizer_v2.optimizer_v2 import Optimizer as Optimizer
from tensorfleet_legacy.keras.optimizers import Adadelta as _Adadelta
from tensorfleet_legacy.keras.optimizers import Adagrad as Adagrad
from tensorfleet_legacy.keras.optimizers import Adam as _Adam
from tensorfleet_legacy.keras.optimizers import Adamax as _Adamax
from tensorfleet_legacy.keras.optimizers import Ftrl as Ftrl
from tensorfleet_legacy.keras.optimizers import Nadam as Nadam
from tensorfleet_legacy.keras.optimizers import RMSprop as _RMSprop
from tensorfleet_legacy.keras.optimizers import SGD as _SGD
from tensorfleet_legacy.keras.optimizers import deserialize as deserialize
from tensorfleet_legacy.keras.optimizers import get as get
from tensorfleet_legacy.keras.optimizers import serialize as serialize
import typing
class Adadelta(_Adadelta):
    def __init__(self, learning_rate: typing.Any = ..., rho: typing.Any = ..., epsilon: typing.Any = ..., name: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class Adam(_Adam):
    def __init__(self, learning_rate: typing.Any = ..., beta_1: typing.Any = ..., beta_2: typing.Any = ..., epsilon: typing.Any = ..., amsgrad: typing.Any = ..., name: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class Adamax(_Adamax):
    def __init__(self, learning_rate: typing.Any = ..., beta_1: typing.Any = ..., beta_2: typing.Any = ..., epsilon: typing.Any = ..., name: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class RMSprop(_RMSprop):
    def __init__(self, learning_rate: typing.Any = ..., rho: typing.Any = ..., momentum: typing.Any = ..., epsilon: typing.Any = ..., centered: typing.Any = ..., name: typing.Any = ..., **kwargs: typing.Any) -> None: ...
class SGD(_SGD):
    def __init__(self, learning_rate: typing.Any = ..., momentum: typing.Any = ..., nesterov: typing.Any = ..., name: typing.Any = ..., **kwargs: typing.Any) -> None: ...
