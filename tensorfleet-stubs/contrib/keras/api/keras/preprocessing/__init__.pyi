# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras.api.keras.preprocessing import image as image
from tensorfleet.contrib.keras.api.keras.preprocessing import sequence as sequence
from tensorfleet.contrib.keras.api.keras.preprocessing import text as text
import typing
def __getattr__(name: str) -> typing.Any: ...
