# Written by tools/make_stubs.py.
from tensorfleet.api.train.checkpoint_manager import CheckpointManager as CheckpointManager
from tensorfleet.contrib.checkpoint import python as python
from tensorfleet_legacy.contrib.checkpoint.containers import NumpyState as NumpyState
from tensorfleet_legacy.contrib.checkpoint.containers import UniqueNameTracker as UniqueNameTracker
import typing
def __getattr__(name: str) -> typing.Any: ...
