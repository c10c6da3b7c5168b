# Written by tools/make_stubs.py.
from tensorfleet.contrib.learn.datasets import base as base
from tensorfleet.contrib.learn.datasets import mnist as mnist
from tensorfleet_legacy.contrib.learn.datasets import load_dataset as load_dataset
from tensorfleet_legacy.contrib.learn.datasets import load_iris as load_iris
