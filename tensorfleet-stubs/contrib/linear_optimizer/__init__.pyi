# Written by tools/make_stubs.py.
from tensorfleet.contrib.linear_optimizer import python as python
from tensorfleet_legacy.contrib.linear_optimizer.sdca_ops import SdcaModel as SdcaModel
from tensorfleet_legacy.contrib.linear_optimizer.sdca_ops import SparseFeatureColumn as SparseFeatureColumn
from tensorfleet_legacy.estimator.canned.linear_sdca import SDCAOptimizer as SDCAOptimizer
import typing
def __getattr__(name: str) -> typing.Any: ...
