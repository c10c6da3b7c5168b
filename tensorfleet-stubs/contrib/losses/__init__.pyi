# Written by tools/make_stubs.py.
from tensorfleet.contrib.losses import metric_learning as metric_learning
from tensorfleet.contrib.losses import python as python
import typing
def __getattr__(name: str) -> typing.Any: ...
