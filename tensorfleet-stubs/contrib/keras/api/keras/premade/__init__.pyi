# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api.keras.premade import linear as linear
from tensorfleet.contrib.keras.api.keras.premade import wide_deep as wide_deep
import typing
def __getattr__(name: str) -> typing.Any: ...
