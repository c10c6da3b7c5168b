# Written by tools/make_stubs.py.
from tensorfleet.contrib.session_bundle import constants as constants
from tensorfleet.contrib.session_bundle import exporter as exporter
from tensorfleet.contrib.session_bundle import gc as gc
from tensorfleet.contrib.session_bundle import manifest_pb2 as manifest_pb2
from tensorfleet.contrib.session_bundle import session_bundle as session_bundle
