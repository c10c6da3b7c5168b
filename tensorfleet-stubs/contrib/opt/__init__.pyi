# Written by tools/make_stubs.py.
from tensorfleet.contrib.opt import python as python
from tensorfleet_legacy.contrib.opt.elastic_average_optimizer import AGNCustomGetter as AGNCustomGetter
from tensorfleet_legacy.contrib.opt.elastic_average_optimizer import AGNOptimizer as AGNOptimizer
from tensorfleet_legacy.contrib.opt.elastic_average_optimizer import ElasticAverageCustomGetter as ElasticAverageCustomGetter
from tensorfleet_legacy.contrib.opt.elastic_average_optimizer import ElasticAverageOptimizer as ElasticAverageOptimizer
from tensorfleet_legacy.contrib.opt.elastic_average_optimizer import ModelAverageCustomGetter as ModelAverageCustomGetter
from tensorfleet_legacy.contrib.opt.elastic_average_optimizer import ModelAverageOptimizer as ModelAverageOptimizer
from tensorfleet_legacy.contrib.opt.external_optimizer import ExternalOptimizerInterface as ExternalOptimizerInterface
from tensorfleet_legacy.contrib.opt.external_optimizer import ScipyOptimizerInterface as ScipyOptimizerInterface
from tensorfleet_legacy.contrib.opt.powersign import AdaMaxOptimizer as _AdaMaxOptimizer
from tensorfleet_legacy.contrib.opt.powersign import AdamGSOptimizer as AdamGSOptimizer
from tensorfleet_legacy.contrib.opt.powersign import AddSignOptimizer as AddSignOptimizer
from tensorfleet_legacy.contrib.opt.powersign import LARSOptimizer as LARSOptimizer
from tensorfleet_legacy.contrib.opt.powersign import PowerSignOptimizer as PowerSignOptimizer
from tensorfleet_legacy.contrib.opt.powersign import RegAdagradOptimizer as _RegAdagradOptimizer
from tensorfleet_legacy.contrib.opt.shampoo import GGTOptimizer as GGTOptimizer
from tensorfleet_legacy.contrib.opt.shampoo import ShampooOptimizer as ShampooOptimizer
from tensorfleet_legacy.contrib.opt.variable_clipping_optimizer import MultitaskOptimizerWrapper as MultitaskOptimizerWrapper
from tensorfleet_legacy.contrib.opt.variable_clipping_optimizer import VariableClippingOptimizer as VariableClippingOptimizer
from tensorfleet_legacy.contrib.opt.variable_clipping_optimizer import clip_gradients_by_global_norm as clip_gradients_by_global_norm
from tensorfleet_legacy.contrib.opt.weight_decay_optimizers import AdamWOptimizer as AdamWOptimizer
from tensorfleet_legacy.contrib.opt.weight_decay_optimizers import DecoupledWeightDecayExtension as DecoupledWeightDecayExtension
from tensorfleet_legacy.contrib.opt.weight_decay_optimizers import DropStaleGradientOptimizer as DropStaleGradientOptimizer
from tensorfleet_legacy.contrib.opt.weight_decay_optimizers import LazyAdamGSOptimizer as LazyAdamGSOptimizer
from tensorfleet_legacy.contrib.opt.weight_decay_optimizers import LazyAdamOptimizer as LazyAdamOptimizer
from tensorfleet_legacy.contrib.opt.weight_decay_optimizers import MomentumWOptimizer as MomentumWOptimizer
from tensorfleet_legacy.contrib.opt.weight_decay_optimizers import MovingAverageOptimizer as MovingAverageOptimizer
from tensorfleet_legacy.contrib.opt.weight_decay_optimizers import NadamOptimizer as NadamOptimizer
from tensorfleet_legacy.contrib.opt.weight_decay_optimizers import extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay
import builtins
import typing
class AdaMaxOptimizer(_AdaMaxOptimizer):
    def __init__(self, learning_rate: typing.Any = ..., beta1: typing.Any = ..., beta2: typing.Any = ..., epsilon: typing.Any = ..., use_locking: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class RegAdagradOptimizer(_RegAdagradOptimizer):
    def __init__(self, learning_rate: typing.Any, initial_accumulator_value: builtins.float = ..., use_locking: builtins.bool = ..., name: builtins.str = ...) -> None: ...
def __getattr__(name: str) -> typing.Any: ...
