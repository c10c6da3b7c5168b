# Written by tools/make_stubs.py.
from tensorfleet.api.saved_model.builder import SavedModelBuilder as SavedModelBuilder
