# Written by tools/make_stubs.py.
from tensorfleet.api.saved_model.signatures import build_tensor_info as build_tensor_info
from tensorfleet.api.saved_model.signatures import get_tensor_from_tensor_info as get_tensor_from_tensor_info
