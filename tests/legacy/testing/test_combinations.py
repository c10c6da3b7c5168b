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
    assert len(strategy_combinations.distributions_and_v1_optimizers()) == 6


def test_the_tests_of_a_class_run_for_each_choice():
    seen = []

    @combinations.generate(combinations.combine(mode=["graph", "eager"], n=[1, 2]))
    class Case(tf.test.TestCase):
        def test_one(self, n):
            seen.append(("one", n))

        def test_two(self, n):
            seen.append(("two", n))

        def helper(self):
            raise AssertionError("not a test")

    names, _ = run(Case)
    assert len(names) == 4 and sorted(seen) == [("one", 1), ("one", 2), ("two", 1), ("two", 2)]


def test_what_asks_for_more_devices_than_there_are_is_left_out():
    seen = []

    class Case(parameterized.TestCase):
        @combinations.generate(combinations.combine(n=[1, 2], required_gpus=[0, 1000]))
        def test_it(self, n):
            seen.append(n)

        @combinations.generate(strategy_combinations.tpu_strategy_combinations())
        def test_no_tpu(self, distribution):
            seen.append(distribution)

    _, result = run(Case)
    assert seen == [1, 2] and len(result.skipped) == 1
    with pytest.raises(tf.errors.NotFoundError, match="No TPU was found"):
        strategy_combinations.tpu_strategy.strategy  # noqa: B018


def test_every_list_of_strategies_has_its_name():
    assert len(strategy_combinations.all_strategy_combinations()) == 5 * 2 + 2
    assert len(strategy_combinations.all_strategy_combinations_minus_default()) == 4 * 2 + 2
    assert len(strategy_combinations.distributions_and_v1_and_v2_optimizers()) == 12
    with pytest.raises(ValueError, match="must be at least 1"):
        strategy_combinations.set_virtual_cpus_to_at_least(0)
