# Written by tools/make_stubs.py.
from tensorfleet.examples.tutorials import mnist as mnist
