# Written by tools/make_stubs.py.
from tensorfleet.api.saved_model.predictor import Predictor as Predictor
