# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.session_bundle.exporter import load_session_bundle_from_path as load_session_bundle_from_path
