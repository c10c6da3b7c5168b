"""Stands in for TensorFlow on PYTHONPATH: the first import of it installs TensorFleet's alias."""

import importlib
import sys

from tensorfleet.cli.scripts import alias

alias.install()
sys.modules[__name__] = importlib.import_module("tensorfleet")
