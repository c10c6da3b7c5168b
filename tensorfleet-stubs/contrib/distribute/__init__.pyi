# Written by tools/make_stubs.py.
from tensorfleet.api.distribute.context import get_strategy as _get_distribution_strategy
from tensorfleet.api.distribute.context import has_strategy as _has_distribution_strategy
from tensorfleet.api.distribute.contrib import CollectiveAllReduceStrategy as CollectiveAllReduceStrategy
from tensorfleet.api.distribute.contrib import MirroredStrategy as MirroredStrategy
from tensorfleet.api.distribute.contrib import OneDeviceStrategy as OneDeviceStrategy
from tensorfleet.api.distribute.contrib import ParameterServerStrategy as ParameterServerStrategy
from tensorfleet.api.distribute.cross_device import ReductionToOneDevice as _ReductionToOneDeviceCrossDeviceOps
from tensorfleet.api.distribute.extended import StrategyExtended as _DistributionStrategyExtended
from tensorfleet.api.distribute.strategy import Strategy as _DistributionStrategy
from tensorfleet.contrib.distribute import python as python
from tensorfleet_legacy.contrib.distribute.monitor import Monitor as Monitor
from tensorfleet_legacy.estimator.distribute_config import DistributeConfig as DistributeConfig
from tensorfleet_legacy.internals.distribute.values import StandardInputStep as StandardInputStep
from tensorfleet_legacy.internals.distribute.values import StandardSingleLossStep as StandardSingleLossStep
from tensorfleet_legacy.internals.distribute.values import _Step as _Step
import typing
DistributionStrategy = _DistributionStrategy
DistributionStrategyExtended = _DistributionStrategyExtended
ReductionToOneDeviceCrossDeviceOps = _ReductionToOneDeviceCrossDeviceOps
Step = _Step
get_distribution_strategy = _get_distribution_strategy
has_distribution_strategy = _has_distribution_strategy
def __getattr__(name: str) -> typing.Any: ...
