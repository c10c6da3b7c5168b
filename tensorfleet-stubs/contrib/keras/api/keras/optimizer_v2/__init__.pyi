# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api.keras.optimizer_v2 import adadelta as adadelta
from tensorfleet.contrib.keras.api.keras.optimizer_v2 import adagrad as adagrad
from tensorfleet.contrib.keras.api.keras.optimizer_v2 import adam as adam
from tensorfleet.contrib.keras.api.keras.optimizer_v2 import adamax as adamax
from tensorfleet.contrib.keras.api.keras.optimizer_v2 import ftrl as ftrl
from tensorfleet.contrib.keras.api.keras.optimizer_v2 import gradient_descent as gradient_descent
from tensorfleet.contrib.keras.api.keras.optimizer_v2 import learning_rate_schedule as learning_rate_schedule
from tensorfleet.contrib.keras.api.keras.optimizer_v2 import nadam as nadam
from tensorfleet.contrib.keras.api.keras.optimizer_v2 import optimizer_v2 as optimizer_v2
from tensorfleet.contrib.keras.api.keras.optimizer_v2 import rmsprop as rmsprop
