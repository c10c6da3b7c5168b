# Written by tools/make_stubs.py.
from tensorfleet.contrib.keras import api as api
from tensorfleet.contrib.keras import python as python
import typing
def __getattr__(name: str) -> typing.Any: ...
