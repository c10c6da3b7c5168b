# Written by tools/make_stubs.py.
from tensorfleet.examples.tutorials.mnist import input_data as input_data
from tensorfleet.examples.tutorials.mnist import mnist as mnist
