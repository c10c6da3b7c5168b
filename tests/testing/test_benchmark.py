"""`tf.test.Benchmark` and `tf.sysconfig`."""

import os

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
