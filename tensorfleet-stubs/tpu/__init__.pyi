# Written by tools/make_stubs.py.
from tensorfleet.tpu import experimental as experimental
from tensorfleet_legacy.estimator.tpu_estimator import CrossShardOptimizer as CrossShardOptimizer
from tensorfleet_legacy.internals.tpu.tpu_function import bfloat16_scope as bfloat16_scope
from tensorfleet_legacy.internals.tpu.tpu_function import core as core
