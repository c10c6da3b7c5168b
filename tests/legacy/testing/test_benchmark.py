"""`tf.test.Benchmark` and `tf.sysconfig`."""

import os

import pytest
from tensorfleet.python.platform import benchmark

import tensorfleet as tf


def test_operations_are_timed_and_reported():
    class Sum(tf.test.Benchmark):
        def benchmark_sum(self):
            with tf.Graph().as_default(), tf.Session(config=tf.test.benchmark_config()) as session:
                return self.run_op_benchmark(session, tf.reduce_sum(tf.ones([10])), min_iters=3, name="sum")

    case = Sum()
    assert not Sum.is_abstract() and tf.test.Benchmark.is_abstract()
    result = case.benchmark_sum()
    assert result["name"] == "sum" and result["iters"] == 3 and result["wall_time"] >= 0
    assert [r["name"] for r in case.reported] == ["sum"]
    with tf.Graph().as_default():
        assert case.evaluate(tf.constant(3)) == 3


def test_there_is_nothing_to_link_with():
    assert os.path.isdir(tf.sysconfig.get_lib())
    assert tf.sysconfig.get_link_flags() == []
    assert tf.sysconfig.get_compile_flags()[0] == f"-I{tf.sysconfig.get_include()}"


def test_a_pattern_chooses_which_benchmarks_run_instead_of_the_tests(monkeypatch):
    benchmark.GLOBAL_BENCHMARK_REGISTRY.clear()
    ran = []

    class Some(tf.test.Benchmark):
        def benchmark_one(self):
            ran.append("one")

        def benchmark_two(self):
            ran.append("two")

        def other(self):
            ran.append("other")

    class Never(tf.test.Benchmark):
        def __init__(self):
            raise AssertionError("none of its benchmarks was asked for")

    assert {Some, Never} == benchmark.GLOBAL_BENCHMARK_REGISTRY
    benchmark._run_benchmarks("Some.*one$")
    benchmark._run_benchmarks("unrelated")
    assert ran == ["one"]
    for arguments in (["script.py", "--benchmarks=Some"], ["script.py", "-benchmarks=Some"]):
        with pytest.raises(SystemExit):
            tf.test.main(arguments)
    assert ran == ["one", "one", "two", "one", "two"]
