# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.learn.monitors import BaseMonitor as BaseMonitor
from tensorfleet_legacy.contrib.learn.monitors import EveryN as EveryN
from tensorfleet_legacy.contrib.learn.monitors import NanLoss as NanLoss
from tensorfleet_legacy.contrib.learn.monitors import NanLossDuringTrainingError as NanLossDuringTrainingError
from tensorfleet_legacy.contrib.learn.monitors import PrintTensor as PrintTensor
from tensorfleet_legacy.contrib.learn.monitors import RunHookAdapterForMonitors as RunHookAdapterForMonitors
from tensorfleet_legacy.contrib.learn.monitors import StopAtStep as StopAtStep
from tensorfleet_legacy.contrib.learn.monitors import ValidationMonitor as ValidationMonitor
from tensorfleet_legacy.contrib.learn.monitors import replace_monitors_with_hooks as replace_monitors_with_hooks
from tensorfleet_legacy.contrib.learn.monitors_saving import CaptureVariable as CaptureVariable
from tensorfleet_legacy.contrib.learn.monitors_saving import CheckpointSaver as CheckpointSaver
from tensorfleet_legacy.contrib.learn.monitors_saving import GraphDump as GraphDump
from tensorfleet_legacy.contrib.learn.monitors_saving import LoggingTrainable as LoggingTrainable
from tensorfleet_legacy.contrib.learn.monitors_saving import StepCounter as StepCounter
from tensorfleet_legacy.contrib.learn.monitors_saving import SummarySaver as SummarySaver
from tensorfleet_legacy.contrib.learn.monitors_saving import get_default_monitors as get_default_monitors
