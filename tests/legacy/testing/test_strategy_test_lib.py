"""What every strategy must do, asked of some."""

import unittest

import pytest
from tensorfleet.python.distribute import strategy_test_lib as lib

import tensorfleet as tf

TWO = tf.ConfigProto(device_count={"CPU": 2})


class Two(lib.DistributionTestBase, lib.TwoDeviceDistributionTestBase):
    __test__ = False

    def cached_session(self, *args, **kwargs):
        return super().cached_session(config=TWO)

    def runTest(self):
        """The method that is asked for."""
        getattr(self, self.wanted)(tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]))


class One(lib.DistributionTestBase, lib.OneDeviceDistributionTestBase):
    __test__ = False

    def runTest(self):
        """The method that is asked for."""
        getattr(self, self.wanted)(tf.distribute.OneDeviceStrategy("/cpu:0"))


EACH = """
    replica_id call_and_merge_exceptions global_step_update numpy_dataset trainable_variable run all_reduce_sum
    all_reduce_sum_gradients all_reduce_sum_gradient_tape all_reduce_mean all_reduce_mean_gradients
    all_reduce_mean_gradient_tape minimize_loss_graph
"""


@pytest.mark.parametrize("kind", [One, Two])
@pytest.mark.parametrize("name", EACH.split())
def test_a_strategy_does_what_it_must(kind, name):
    case = kind()
    case.wanted = f"_test_{name}"
    result = unittest.TestResult()
    case.run(result)
    assert result.wasSuccessful(), result.failures + result.errors


def test_elements_go_to_the_replicas_in_turn():
    class Case(Two):
        def runTest(self):
            strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
            input_fn = self._input_fn_to_test_input_context(lambda: tf.data.Dataset.range(4), 2, 1, 0)
            with self.cached_session() as sess:
                iterator = strategy.make_input_fn_iterator(input_fn)
                self._test_input_fn_iterator(
                    iterator, strategy.extended.worker_devices, [[0, 1], [2, 3]], sess
                )

    result = unittest.TestResult()
    Case().run(result)
    assert result.wasSuccessful(), result.failures + result.errors
