"""Tests that run once for each choice of arguments."""

import unittest

import pytest
from absl.testing import parameterized
from tensorfleet.python.data.kernel_tests import test_base
from tensorfleet.python.distribute import combinations, strategy_combinations

import tensorfleet as tf


def run(case):
    """The names of the tests of a class that ran, and its result."""
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    names = sorted(t.id().rpartition(".")[2] for t in suite if "test_session" not in t.id())
    result = unittest.TestResult()
    suite.run(result)
    assert result.wasSuccessful(), result.failures + result.errors
    return names, result


def test_all_choices_of_arguments():
    assert combinations.combine(a=[1, 2], b=3) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]
    both = combinations.times(combinations.combine(a=[1, 2]), combinations.combine(b=["x", "y"]))
    assert [tuple(c.values()) for c in both] == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]
    with pytest.raises(ValueError, match="Keys need to not overlap"):
        combinations.times(combinations.combine(a=1), combinations.combine(a=2))


def test_a_test_runs_for_each_choice_that_can_run():
    seen = []

    class Case(parameterized.TestCase):
        @combinations.generate(
            combinations.times(test_base.default_test_combinations(), combinations.combine(n=[1, 2]))
        )
        def test_it(self, n):
            seen.append(n)
            assert tf.get_default_graph().get_operations() == []

        @combinations.generate(combinations.combine(mode="eager"))
        def test_eager(self):
            raise AssertionError("there is none")

    names, result = run(Case)
    assert names == [
        "test_eager",
        "test_it_test_mode_graph_n_1_tf_api_version_1",
        "test_it_test_mode_graph_n_2_tf_api_version_1",
    ]
    assert sorted(seen) == [1, 2]
    assert len(result.skipped) == 1


def test_strategies_are_made_for_tests_if_there_are_devices_for_them():
    seen = []

    class Case(parameterized.TestCase):
        @combinations.generate(
            combinations.combine(
                distribution=[
                    strategy_combinations.mirrored_strategy_with_one_cpu,
                    strategy_combinations.mirrored_strategy_with_two_gpus,
                ],
                optimizer=strategy_combinations.optimizers_v1[:1],
                mode=strategy_combinations.graph_and_eager_modes,
            )
        )
        def test_it(self, distribution, optimizer):
            seen.append((distribution, optimizer()))

    names, _ = run(Case)
    assert names == ["test_it_test_distribution_Mirrored1CPU_mode_graph_optimizer_GradientDescentV1"]
    ((strategy, optimizer),) = seen
    assert isinstance(strategy, tf.distribute.MirroredStrategy)
    assert isinstance(optimizer, tf.train.GradientDescentOptimizer)
    assert len(strategy_combinations.distributions_and_v1_optimizers()) == 28
