# Written by tools/make_stubs.py.
from tensorfleet.api.functions.batching import nondifferentiable_batch_function as _batch_function
from tensorfleet.contrib.batching import python as python
import typing
batch_function = _batch_function
def __getattr__(name: str) -> typing.Any: ...
