# Written by tools/make_stubs.py.
from tensorfleet.api.saved_model.loader import load as load
from tensorfleet.api.saved_model.loader import maybe_saved_model_directory as maybe_saved_model_directory
