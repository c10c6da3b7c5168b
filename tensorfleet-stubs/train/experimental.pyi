# Written by tools/make_stubs.py.
from tensorfleet.api.train.loss_scaling import DynamicLossScale as DynamicLossScale
from tensorfleet.api.train.loss_scaling import FixedLossScale as FixedLossScale
from tensorfleet.api.train.loss_scaling import LossScale as LossScale
from tensorfleet.api.train.loss_scaling import MixedPrecisionLossScaleOptimizer as MixedPrecisionLossScaleOptimizer
from tensorfleet.api.train.loss_scaling import disable_mixed_precision_graph_rewrite as disable_mixed_precision_graph_rewrite
from tensorfleet.api.train.loss_scaling import enable_mixed_precision_graph_rewrite as enable_mixed_precision_graph_rewrite
from tensorfleet.api.train.python_state import PythonState as PythonState
