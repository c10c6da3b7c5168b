# Written by tools/make_stubs.py.
from tensorfleet.keras.datasets import boston_housing as boston_housing
from tensorfleet.keras.datasets import cifar10 as cifar10
from tensorfleet.keras.datasets import cifar100 as cifar100
from tensorfleet.keras.datasets import fashion_mnist as fashion_mnist
from tensorfleet.keras.datasets import imdb as imdb
from tensorfleet.keras.datasets import mnist as mnist
from tensorfleet.keras.datasets import reuters as reuters
