# Written by tools/make_stubs.py.
from tensorfleet.api.train.checkpoint_reader import NewCheckpointReader as NewCheckpointReader
import typing
def __getattr__(name: str) -> typing.Any: ...
