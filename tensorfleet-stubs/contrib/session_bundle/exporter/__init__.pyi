# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.session_bundle.exporter import Exporter as Exporter
from tensorfleet_legacy.contrib.session_bundle.exporter import classification_signature as classification_signature
from tensorfleet_legacy.contrib.session_bundle.exporter import generic_signature as generic_signature
from tensorfleet_legacy.contrib.session_bundle.exporter import gfile_copy_callback as gfile_copy_callback
from tensorfleet_legacy.contrib.session_bundle.exporter import regression_signature as regression_signature
import typing
def __getattr__(name: str) -> typing.Any: ...
