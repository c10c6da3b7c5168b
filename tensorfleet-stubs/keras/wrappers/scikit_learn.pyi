# Written by tools/make_stubs.py.
from tensorfleet_legacy.keras.wrappers.scikit_learn import KerasClassifier as KerasClassifier
from tensorfleet_legacy.keras.wrappers.scikit_learn import KerasRegressor as KerasRegressor
