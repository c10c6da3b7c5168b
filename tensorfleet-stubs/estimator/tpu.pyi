# Written by tools/make_stubs.py.
from tensorfleet_legacy.estimator.tpu_estimator import InputPipelineConfig as InputPipelineConfig
from tensorfleet_legacy.estimator.tpu_estimator import RunConfig as RunConfig
from tensorfleet_legacy.estimator.tpu_estimator import TPUConfig as TPUConfig
from tensorfleet_legacy.estimator.tpu_estimator import TPUEstimator as TPUEstimator
from tensorfleet_legacy.estimator.tpu_estimator import TPUEstimatorSpec as TPUEstimatorSpec
