# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api.keras.wrappers import scikit_learn as scikit_learn
import typing
def __getattr__(name: str) -> typing.Any: ...
