# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api.keras.datasets import boston_housing as boston_housing
from tensorfleet.contrib.keras.api.keras.datasets import cifar10 as cifar10
from tensorfleet.contrib.keras.api.keras.datasets import cifar100 as cifar100
from tensorfleet.contrib.keras.api.keras.datasets import fashion_mnist as fashion_mnist
from tensorfleet.contrib.keras.api.keras.datasets import imdb as imdb
from tensorfleet.contrib.keras.api.keras.datasets import mnist as mnist
from tensorfleet.contrib.keras.api.keras.datasets import reuters as reuters
import typing
def __getattr__(name: str) -> typing.Any: ...
