# Written by tools/make_stubs.py.
from tensorfleet.contrib.tpu import python as python
from tensorfleet_legacy.estimator.tpu_estimator import CrossShardOptimizer as CrossShardOptimizer
from tensorfleet_legacy.estimator.tpu_estimator import InputPipelineConfig as InputPipelineConfig
from tensorfleet_legacy.estimator.tpu_estimator import RunConfig as RunConfig
from tensorfleet_legacy.estimator.tpu_estimator import TPUConfig as TPUConfig
from tensorfleet_legacy.estimator.tpu_estimator import TPUEstimator as TPUEstimator
from tensorfleet_legacy.estimator.tpu_estimator import TPUEstimatorSpec as TPUEstimatorSpec
from tensorfleet_legacy.internals.tpu.tpu_function import bfloat16_scope as bfloat16_scope
