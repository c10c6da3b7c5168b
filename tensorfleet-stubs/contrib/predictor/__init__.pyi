# Written by tools/make_stubs.py.
from tensorfleet.api.saved_model.predictor import from_saved_model as from_saved_model
from tensorfleet.contrib.predictor import predictor as predictor
from tensorfleet.contrib.predictor import predictor_factories as predictor_factories
from tensorfleet_legacy.contrib.estimator.rnn import from_contrib_estimator as from_contrib_estimator
from tensorfleet_legacy.contrib.estimator.rnn import from_estimator as from_estimator
