# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.estimator import model_to_estimator as model_to_estimator
