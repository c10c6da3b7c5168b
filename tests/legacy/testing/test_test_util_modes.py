"""What TensorFlow's own tests take from `test_util`."""

import unittest

import numpy as np
import pytest
from tensorfleet.python.eager import context
from tensorfleet.python.framework import test_util
from tensorfleet.python.platform import googletest, test

import tensorfleet as tf


def outcome(case: type, method: str) -> unittest.TestResult:
    result = unittest.TestResult()
    case(method).run(result)
    return result


class Modes(tf.test.TestCase):
    __test__ = False

    @test_util.run_v1_only("a reason")
    def test_v1(self):
        self.assertIsNone(tf.get_default_session())

    @test_util.run_deprecated_v1
    def test_deprecated(self):
        self.assertIsNone(tf.get_default_session())

    @test_util.run_in_graph_and_eager_modes
    def test_both(self):
        self.assertAllEqual(self.evaluate(tf.constant([1, 2])), [1, 2])
        self.assertIsNotNone(tf.get_default_session())

    @test_util.run_in_graph_and_eager_modes(use_gpu=False)
    def test_both_with_arguments(self):
        self.assertEqual(tf.constant(1).device, "/device:CPU:0")

    @test_util.run_v2_only
    def test_v2(self):
        self.fail("not run")

    @test_util.run_gpu_only
    def test_gpu(self):
        self.assertTrue(tf.test.is_gpu_available())

    @test_util.skip_if(True)
    def test_skipped(self):
        self.fail("not run")

    def test_eager(self):
        with context.eager_mode():
            self.fail("not run")

    def test_error_skips(self):
        with test_util.skip_if_error(self, ValueError, "not here"):
            raise ValueError("it is not here")

    def test_other_error(self):
        with test_util.skip_if_error(self, ValueError, "not here"):
            raise ValueError("another")


@pytest.mark.parametrize("name", ["test_v1", "test_deprecated", "test_both", "test_both_with_arguments"])
def test_tests_of_graphs_run(name):
    assert outcome(Modes, name).wasSuccessful()
    assert not outcome(Modes, name).skipped


@pytest.mark.parametrize("name", ["test_v2", "test_skipped", "test_eager", "test_error_skips"])
def test_tests_of_what_is_not_here_are_skipped(name):
    result = outcome(Modes, name)
    assert result.wasSuccessful() and len(result.skipped) == 1


def test_tests_of_a_gpu_are_skipped_without_one():
    assert bool(outcome(Modes, "test_gpu").skipped) is not tf.test.is_gpu_available()


def test_other_errors_are_not_skipped():
    assert len(outcome(Modes, "test_other_error").errors) == 1


def test_a_class_decorator_reaches_every_test():
    @test_util.run_all_in_graph_and_eager_modes
    class All(tf.test.TestCase):
        __test__ = False

        def test_in_session(self):
            self.assertIsNotNone(tf.get_default_session())

        def helper(self):
            return tf.get_default_session()

    assert outcome(All, "test_in_session").wasSuccessful()
    assert All("helper").helper() is None
    with pytest.raises(ValueError, match="run_all_in_graph_and_eager_modes"):
        test_util.run_in_graph_and_eager_modes(All)


def test_the_test_case_has_its_other_names():
    assert test_util.TensorFlowTestCase is test.TestCase is googletest.TestCase is tf.test.TestCase
    assert test_util.create_local_cluster is tf.test.create_local_cluster


def test_a_test_session_places_softly_and_on_the_cpu():
    class Placed(tf.test.TestCase):
        __test__ = False

        def test_it(self):
            with self.session():
                self.assertEqual(tf.constant(1).device, "/device:CPU:0")
            with self.session(use_gpu=True):
                self.assertEqual(tf.constant(1).device, "")
                with tf.device("/gpu:7"):
                    self.assertEqual(self.evaluate(tf.constant(3)), 3)

    assert outcome(Placed, "test_it").wasSuccessful()


def test_ops_in_graph():
    with tf.Graph().as_default() as graph:
        tf.identity(tf.constant(1.0, name="c"), name="i")
    result = test_util.assert_ops_in_graph({"i": "Identity"}, graph)
    assert list(result) == ["i"]
    with pytest.raises(ValueError, match="different"):
        test_util.assert_ops_in_graph({"i": "Const"}, graph)
    with pytest.raises(ValueError, match="Not all expected ops"):
        test_util.assert_ops_in_graph({"i": "Identity", "j": "Const"}, graph)
    assert test_util.get_node_def_from_graph("c", graph.as_graph_def()).op == "Const"
    assert test_util.get_node_def_from_graph("d", graph.as_graph_def()) is None


def test_layouts(session):
    assert test_util.NHWCToNCHW([1, 2, 3, 4]) == [1, 4, 2, 3]
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    moved = test_util.NCHWToNHWC(test_util.NHWCToNCHW(tf.constant(x)))
    np.testing.assert_array_equal(session.run(moved), x)


def test_there_are_graphs_only():
    assert not context.executing_eagerly()
    assert context.context().in_graph_mode() and not context.context().executing_eagerly()
    with context.graph_mode():
        assert tf.constant(1).graph is tf.get_default_graph()


def test_a_free_port_under_its_old_name():
    from tensorfleet.python.util import net_lib

    assert 0 < net_lib.pick_unused_port_or_die() < 2**16


def test_a_test_runs_once_for_each_day_of_compatibility():
    seen = []

    @test_util.with_forward_compatibility_horizons(None, [2051, 1, 1])
    def one(self):
        seen.append(tf.compat.forward_compatible(2050, 1, 1))

    one(None)
    assert seen == [False, True]
    with pytest.raises(ValueError, match="Bad forward compatibility horizon"):
        test_util.with_forward_compatibility_horizons([2051, 1])


def test_combinations_have_names():
    result = test_util.generate_combinations_with_testcase_name(shape=[(2, 3)], kind=["a", "b"])
    assert [m["testcase_name"] for m in result] == ["_test_kind_a_shape_23", "_test_kind_b_shape_23"]
    assert result[0]["shape"] == (2, 3)


def test_a_test_disabled_by_a_predicate():
    from tensorfleet.python.platform import test

    class Some(test.TestCase):
        @test.disable_with_predicate(pred=lambda: True, skip_message="not now")
        def test_it(self):
            raise AssertionError

        @test.disable_with_predicate(pred=lambda: False, skip_message="not now")
        def test_other(self):
            return 3

    with pytest.raises(unittest.SkipTest, match="not now"):
        Some("test_it").test_it()
    assert Some("test_other").test_other() == 3
